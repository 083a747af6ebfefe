"""Carry out applications' requests about their tasks, each exactly once (P18).

A request is posted like a submission. It runs after the submission of its task, also where that is set aside
until a person acts, and after earlier requests about the same task, by the same transitions that operators
use. The application's own writes are committed with it, or not at all. A request that fails is retried with
backoff; one that the application refuses is set aside until a person acts. Neither blocks requests about
other tasks.
"""

from collections.abc import Sequence
from functools import cache
from uuid import UUID

from django.db import transaction
from django.db.models import BooleanField, Exists, Max, OuterRef, QuerySet
from django.db.models.expressions import RawSQL

from . import conf, registry
from .agents import payload_schemas
from .alerting.failures import fail
from .applications import status_messages
from .database import batches, prepared, sql
from .database.lane import Problem
from .database.sql import MANY, compiled
from .decisions.amendment import Amendment
from .decisions.input_change import TakenBy
from .decisions.progress import Refusal
from .messaging import queues
from .models import StatusMessage, Step, Submission, Task, TaskRequest
from .models.fields import DatabaseNow
from .models.inbox import SUBMISSIONS
from .models.request import REQUESTS, RequestedAct, waits_for_person
from .states import Direction, Outcome
from .transitions.input_changes import change_input
from .transitions.reported import report
from .transitions.resubmit import resubmit
from .transitions.undo import undo
from .transitions.waits import Report
from .workflows.workflow import Accepted, AskedChange, Refused, Workflow

# As many tries have found no worker with the workflow, for some two minutes, when it counts as gone and not
# as one that a deploy has not brought yet: then there is no code of the application to call.
UNKNOWN_TRIES = conf.ALERT_AFTER_FAILURES - 1
WAITS = waits_for_person("orchestration_taskrequest")

# Marks the messages of the transaction that carries out a request, by their ids after `last`.
NAME = """
UPDATE orchestration_statusmessage SET detail = detail || jsonb_build_object('request', %(request)s)
WHERE task_id = %(task)s AND id > %(last)s
"""


def take(limit: int) -> int:
    """Carry out up to `limit` requests, each in its own transaction; return how many were handled."""
    ids = [number for (number,) in prepared.run(_first(), {"limit": limit})]
    return batches.bisect(ids, _deal_unless_busy, _fail, apart=True, patience=limit)


def _deal_unless_busy(ids: Sequence[int]) -> int:
    try:
        return sum(map(_deal, ids))
    except Exception as error:
        if sql.is_busy(error):
            return 0  # a later look finds it
        raise


@cache
def _first() -> str:
    """Return the statement for the ids of the first that are due; it is compiled once."""
    return compiled(_due().values_list("id")[:MANY])


def _due() -> QuerySet[TaskRequest]:
    """Return the due requests that are first for their task, in the order of `request_due`."""
    about = {"workflow": OuterRef("workflow"), "reference": OuterRef("reference")}
    before = TaskRequest.objects.filter(REQUESTS.open, **about, id__lt=OuterRef("id"))
    submission = Submission.objects.filter(SUBMISSIONS.open, **about)
    return (
        TaskRequest.objects.filter(REQUESTS.due)
        .exclude(Exists(before))
        .exclude(Exists(submission))
        .exclude(RawSQL(WAITS, (), BooleanField()))  # noqa: S611 - constants of our own
        .order_by(*REQUESTS.in_order)
    )


@transaction.atomic
def _deal(number: int) -> int:
    """Carry out a request and notify its application, or write the refusal."""
    request = sql.lock(_due().filter(id=number)).first()
    if request is None:
        return 0  # another process has it
    workflow = _workflow(request)
    tasks = Task.objects.filter(workflow=request.workflow, reference=request.reference)
    task = sql.lock(tasks, no_key=True).values_list("id", flat=True).first()
    if task is None and tasks.exists():
        return 0  # another session has locked it, and other requests must not wait
    last = StatusMessage.objects.filter(task=task).aggregate(last=Max("id", default=0))["last"]
    answer = _carry_out(request, task, workflow)
    refusal = Refusal.TAKEN if isinstance(answer, TakenBy) else answer
    if refusal is None:
        names = {"request": str(request.request), "task": str(task), "last": last}
        sql.run(NAME, names)
        if workflow:
            workflow.accepted([_as_accepted(request)])
    else:
        more = {"steps": list(answer.steps)} if isinstance(answer, TakenBy) else {}
        status_messages.write_refusal(request, task, refusal, **more)
    request.done_at = DatabaseNow()
    request.refusal = refusal.name if refusal else ""
    request.problem = request.reason = ""
    request.save(update_fields=["done_at", "refusal", "problem", "reason"])
    receivers = {request.reply_to, status_messages.owner_of(request)} & registry.receivers.keys()
    queues.ring_after_commit(queues.SCHEDULER, *map(status_messages.queue_of, receivers))
    return 1


def _workflow(request: TaskRequest) -> Workflow | None:
    """Return the workflow of a request, or None for one that is gone; raise `NotRegistered` before."""
    if request.problem == Problem.UNKNOWN and request.tries >= UNKNOWN_TRIES:
        return registry.workflows.get(request.workflow)
    return registry.get(registry.workflows, "workflow", request.workflow)


def _carry_out(
    request: TaskRequest, task: UUID | None, workflow: Workflow | None
) -> Refusal | TakenBy | None:
    """Do what is asked for; return why not. Without its workflow a task is undone by what its steps have."""
    if task is None:
        return Refusal.NO_SUCH_TASK
    if RequestedAct(request.what) is RequestedAct.UNDO:
        return undo(task, actor=request.actor, reason=request.because)
    if RequestedAct(request.what) is RequestedAct.COMPLETE:
        return _report(request, task)
    if workflow is None:
        return Refusal.NO_SUCH_WORKFLOW
    if RequestedAct(request.what) is RequestedAct.AMEND:
        return _amend(request, task, workflow)
    return _resubmit(request, task)


def _as_accepted(request: TaskRequest) -> Accepted:
    return Accepted(
        reference=request.reference,
        id=request.request,
        what=request.what,
        step=request.step,
        note=request.note,
        data=request.amendment.get("data", {}),
    )


def _amend(request: TaskRequest, task: UUID, workflow: Workflow) -> Refusal | TakenBy | None:
    """Change the input of a task for its steps to come."""
    data = request.amendment.get("data")
    if not isinstance(data, dict):  # it was posted by SQL
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


def _report(request: TaskRequest, task: UUID) -> Refusal | None:
    """Record how a step ends that awaits its result."""
    try:
        how = Report(id=str(request.request), actor=request.actor, **request.amendment)
    except (TypeError, ValueError):  # it was posted by SQL
        return Refusal.INVALID
    try:
        if how.outcome == Outcome.DONE:
            payload_schemas.check_report(request.workflow, request.step, how.result)
    except payload_schemas.Invalid:
        return Refusal.INVALID
    return report(task, request.step, how)


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


def _fail(number: int, error: Exception) -> None:
    """Set a refused request aside; postpone it after any other failure."""
    unknown = isinstance(error, registry.NotRegistered)
    fail(REQUESTS, [number], error, problem=Problem.UNKNOWN if unknown else Problem.FAILING)
