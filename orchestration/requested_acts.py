"""What applications ask for about their tasks, by the same transitions that operators use (P18)."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from . import registry
from .agents import payload_schemas
from .decisions.amendment import Amendment
from .decisions.input_change import TakenBy
from .decisions.progress import Refusal
from .models import Step, Task, TaskRequest
from .models.request import RequestedAct
from .states import Direction, Outcome
from .transitions.input_changes import change_input
from .transitions.reported import report
from .transitions.resubmit import resubmit
from .transitions.undo import undo, undo_part
from .transitions.waits import Report
from .workflows.workflow import AskedChange, Refused, Workflow

Answer = Refusal | TakenBy | None


def carry_out(
    requests: Sequence[TaskRequest],
    tasks: Mapping[int, UUID | None],
    workflows: Mapping[int, Workflow | None],
) -> dict[int, Answer]:
    """Do what is asked for about locked tasks; return why not, by the requests' ids, as `tasks` are.

    All reports are recorded together. A task whose workflow is gone is undone by what its steps have.
    """
    answers: dict[int, Answer] = {}
    reports: list[tuple[TaskRequest, UUID, Report]] = []
    for request in requests:
        task = tasks[request.id]
        if task is None:
            answers[request.id] = Refusal.NO_SUCH_TASK
        elif RequestedAct(request.what) is not RequestedAct.COMPLETE:
            answers[request.id] = _act(request, task, workflows[request.id])
        elif (how := _report(request)) is None:
            answers[request.id] = Refusal.INVALID
        else:
            reports.append((request, task, how))
    ended = report([(task, request.step, how) for request, task, how in reports])
    return answers | {
        request.id: refusal for (request, *_), refusal in zip(reports, ended, strict=True)
    }


def _act(request: TaskRequest, task: UUID, workflow: Workflow | None) -> Answer:
    if RequestedAct(request.what) is RequestedAct.UNDO:
        return undo(task, actor=request.actor, reason=request.because)
    if RequestedAct(request.what) is RequestedAct.UNDO_PART:
        return _undo_part(request, task)
    if workflow is None:
        return Refusal.NO_SUCH_WORKFLOW
    if RequestedAct(request.what) is RequestedAct.AMEND:
        return _amend(request, task, workflow)
    return _resubmit(request, task)


def _undo_part(request: TaskRequest, task: UUID) -> Refusal | None:
    steps = request.amendment.get("steps") if isinstance(request.amendment, dict) else None
    if not isinstance(steps, list) or not all(isinstance(name, str) for name in steps):
        return Refusal.INVALID  # it was posted by SQL
    return undo_part(task, steps, actor=request.actor, reason=request.because)


def changed_data(request: TaskRequest) -> dict[str, Any] | None:
    """Return the fields of the input that a request changes; None if it is not JSON of that shape."""
    data = request.amendment.get("data") if isinstance(request.amendment, dict) else None
    return data if isinstance(data, dict) else None


def _amend(request: TaskRequest, task: UUID, workflow: Workflow) -> Answer:
    """Change the input of a task for its steps to come."""
    data = changed_data(request)
    if data is None:  # it was posted by SQL
        return Refusal.INVALID
    if payload_schemas.guards(workflow.steps, data):
        workflow.permit(
            AskedChange(
                reference=request.reference,
                step="",
                request={},
                data=data,
                task_data=Task.objects.values_list("data", flat=True).get(id=task),
                note=request.note,
            )
        )
    try:
        return change_input(task, workflow, data, actor=request.actor, reason=request.because)
    except (payload_schemas.Invalid, Refused):
        return Refusal.INVALID


def _report(request: TaskRequest) -> Report | None:
    """Return how a step ends by a request; None if that cannot be."""
    try:
        how = Report(id=str(request.request), actor=request.actor, **request.amendment)
    except (TypeError, ValueError):  # it was posted by SQL
        return None
    try:
        if how.outcome == Outcome.DONE:
            payload_schemas.check_report(request.workflow, request.step, how.result)
    except payload_schemas.Invalid:
        return None
    return how


def _resubmit(request: TaskRequest, task: UUID) -> Refusal | None:
    step = Step.objects.filter(task=task, name=request.step, direction=Direction.DO).first()
    if step is None:
        return Refusal.NO_SUCH_STEP
    try:
        amendment = Amendment(**request.amendment)
    except (TypeError, ValueError):  # it was posted by SQL
        return Refusal.INVALID
    _permit(request, step, amendment)
    try:
        return resubmit(
            step.id,
            attempt=request.attempt,
            actor=request.actor,
            reason=request.because,
            amendment=amendment,
        )
    except (payload_schemas.Invalid, Refused):  # by a schema, or by the task's own form
        return Refusal.INVALID


def _permit(request: TaskRequest, step: Step, amendment: Amendment) -> None:
    """Raise `Refused` if a request changes what is guarded, and its workflow does not permit that."""
    if not (amendment.request or amendment.data):
        return
    workflow = registry.get(registry.workflows, "workflow", request.workflow)
    changed = payload_schemas.changed_guarded(step, {**step.request, **amendment.request})
    if changed or payload_schemas.guards(workflow.steps, amendment.data):
        workflow.permit(
            AskedChange(
                reference=request.reference,
                step=request.step,
                request=amendment.request,
                data=amendment.data,
                task_data=step.task.data,
                note=request.note,
            )
        )
