"""Create tasks and their steps: nothing → pending or waiting (P5, P19, P20)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from .. import registry
from ..applications import outbox
from ..applications.outbox import StatusUpdate
from ..database import clock, prepared, sql
from ..decisions.progress import StepPlan, StepView, task_state
from ..decisions.readiness import release
from ..models import Step
from ..models.fields import time_ordered_id
from ..models.inbox import StatusKind
from ..models.retention import content_hash
from ..payloads.limits import why_not_sent
from ..payloads.placeholders import Unresolved, resolve
from ..states import StepState, TaskState
from ..workflows.step import Step as Declared
from ..workflows.workflow import Refused, Workflow
from . import waits
from .new_steps import NewStep, inserting

PENDING, WAITING, AWAITING = StepState.PENDING, StepState.WAITING, StepState.AWAITING
RECEIVED = (StatusKind.RECEIVED,)
ENDED_AT_ONCE = (StatusKind.RECEIVED, StatusKind.COMPLETED)  # none of its steps is needed

# One statement for a whole batch, given as columns: a tenth of the processor time that the same rows take
# as model instances, and the submission process makes more rows than any other. A child has more columns,
# and no more time than the task of its step.
OF_CHILD = ", parent_id, position, result"
DUE = "clock_timestamp() + time_allowed * interval '1 second'"


def _tasks(more: str = "", values: str = "", names: str = "", due: str = DUE) -> str:
    """Return the statement that writes tasks; the columns that children have more are given as texts."""
    return f"""
INSERT INTO orchestration_task (id, workflow, reference, state, priority, fairness_key, data, posted,
    reply_to, owner_application, statuses, overdue, complete_by, clock_jumps, created_at, notify_steps, label,
    contact, value, currency, ended_at{more})
SELECT id, workflow, reference, state, priority, fairness_key, data, {content_hash("data")}, reply_to,
    owner_application, 0, false,
    {due},
    (SELECT coalesce(sum(seconds), 0) FROM orchestration_clockjump), clock_timestamp(),
    EXISTS (SELECT 1 FROM orchestration_application a WHERE a.name = reply_to AND a.notify_steps),
    label, contact, value, currency, CASE state WHEN 'processed' THEN clock_timestamp() END{more}
FROM unnest(%(ids)s::uuid[], %(workflows)s::text[], %(references)s::text[],
    %(priorities)s::smallint[], %(fairness_keys)s::text[], %(data)s::jsonb[], %(reply_to)s::text[],
    %(allowed)s::float8[], %(owner_applications)s::text[], %(labels)s::text[], %(contacts)s::text[],
    %(amounts)s::bigint[], %(currencies)s::text[], %(states)s::text[]{values})
    AS t (id, workflow, reference, priority, fairness_key, data, reply_to, time_allowed,
        owner_application, label, contact, value, currency, state{names})
"""  # noqa: S608 - put together from constants


TASKS = _tasks()
CHILDREN = _tasks(
    more=OF_CHILD,
    values=", %(parents)s::bigint[], %(positions)s::int[], %(results)s::jsonb[], %(until)s::timestamptz[]",
    names=f"{OF_CHILD}, until",
    due=f"least(until, {DUE})",
)


class Parent(NamedTuple):
    """The step whose child a task is, its place among these, and until when it should have ended."""

    step: int
    position: int
    until: datetime


@dataclass(frozen=True, kw_only=True)
class NewTask:
    """What a submission, or a step with children, asks for; `id` only where it had one before a restore."""

    workflow: str
    reference: str
    data: dict[str, Any]
    reply_to: str = ""
    priority: int = 0
    fairness_key: str = ""
    id: UUID | None = None
    parent: Parent | None = None


class Planned(NamedTuple):
    """A task to be, with its steps; none of them begins before the `earliest` time."""

    id: UUID
    item: NewTask
    workflow: Workflow
    earliest: datetime | None
    steps: list[StepPlan]
    state: TaskState


def create(new: Sequence[NewTask], also: Sequence[prepared.Part] = ()) -> list[UUID]:
    """Record tasks with all their steps and "received" messages, in the caller's transaction.

    `also` are statements of the same change, sent with it. Returns the tasks' ids, in order. Raises
    `NotRegistered` for an unknown workflow and `Unresolved` for an input that lacks fields: both before
    anything is written.
    """
    planned = [plan(item) for item in new]
    write(planned, also)
    return [task.id for task in planned]


def write(planned: Sequence[Planned], also: Sequence[prepared.Part] = ()) -> None:
    """Write tasks to be with their steps: all of them children of steps, or none."""
    steps = [
        NewStep(
            task.id, task.item.priority, task.item.fairness_key, plan,
            task.earliest if plan.state == PENDING else None,
        )
        for task in planned
        for plan in task.steps
    ]  # fmt: skip
    prepared.run_all([_inserting(planned), *inserting(steps), *also])
    if any(plan.state == AWAITING for task in planned for plan in task.steps):
        _await(planned)
    outbox.write(
        [
            StatusUpdate(task=task.id, kind=kind)
            for task in planned
            if task.item.reply_to or task.workflow.owner_application
            for kind in (ENDED_AT_ONCE if task.state == TaskState.PROCESSED else RECEIVED)
        ],
        [task.id for task in planned if task.workflow.owner_application],
    )


def _await(planned: Sequence[Planned]) -> None:
    """Write what first steps of new tasks await from people and signals."""
    awaited = {
        (task.id, plan.name): (task, plan)
        for task in planned
        for plan in task.steps
        if plan.state == AWAITING
    }
    rows = Step.objects.filter(task__in=[task.id for task in planned], process_state=AWAITING)
    opened = []
    for number, task_id, name in rows.values_list("id", "task_id", "name"):
        task, plan = awaited[task_id, name]
        view = _view(number, task_id, plan)
        try:
            until = waits.ends_by(view, [view], task.item.data)
        except Unresolved as error:
            raise Refused(f"the step {name} cannot be awaited: {error}") from None
        opened.append(waits.NewWait(step=view, until=until))
    waits.write(opened, ())


def _view(number: int, task: UUID, plan: StepPlan) -> StepView:
    """Return a step to be as decisions see it."""
    return StepView(
        id=number, task=task, name=plan.name, agent=plan.agent, state=plan.state, after=plan.after,
        attempt=0, locked_by=None, request=plan.request, result=None, flow=plan.flow,
        undo_action=plan.undo_action,
    )  # fmt: skip


def plan(item: NewTask) -> Planned:
    """Return a task to be with its steps; raise as `create` does."""
    workflow = registry.get(registry.workflows, "workflow", item.workflow)
    task = item.id or time_ordered_id()
    steps = first_steps(workflow, item.data, task)
    return Planned(
        id=task, item=item, workflow=workflow, earliest=workflow.earliest(item.data), steps=steps,
        state=task_state(TaskState.PENDING, steps, undoing=False),
    )  # fmt: skip


def _inserting(planned: Sequence[Planned]) -> prepared.Part:
    """Return the statement that writes tasks."""
    items = [task.item for task in planned]
    cards = [task.workflow.card(task.item.data) for task in planned]
    children = _children(planned)
    return prepared.Part(
        CHILDREN if children else TASKS,
        {
            "ids": [str(task.id) for task in planned],
            "workflows": [item.workflow for item in items],
            "references": [item.reference for item in items],
            "priorities": [item.priority for item in items],
            "fairness_keys": [item.fairness_key for item in items],
            "data": sql.as_json([item.data for item in items]),
            "reply_to": [item.reply_to for item in items],
            "allowed": [task.workflow.time_allowed + _delay(task.earliest) for task in planned],
            "owner_applications": [task.workflow.owner_application for task in planned],
            "labels": [card.label for card in cards],
            "contacts": [card.contact for card in cards],
            "amounts": [card.amount for card in cards],
            "currencies": [card.currency for card in cards],
            "states": [task.state.value for task in planned],
            **children,
        },
    )


def _children(planned: Sequence[Planned]) -> dict[str, Any]:
    """Return the values that only children have: none for other tasks."""
    parents = [task.item.parent for task in planned if task.item.parent]
    if not parents:
        return {}
    return {
        "parents": [parent.step for parent in parents],
        "positions": [parent.position for parent in parents],
        "until": [parent.until for parent in parents],
        "results": sql.as_json([_result(task) for task in planned]),
    }


def _result(task: Planned) -> Any:
    """Return what is stored as the result of a child: a template, or the value if no step is needed."""
    if task.state != TaskState.PROCESSED:
        return task.workflow.result
    try:
        return resolve(task.workflow.result, task.item.data, {})
    except Unresolved:
        return None


def _delay(after: datetime | None) -> float:
    """Return the seconds until a task may begin."""
    return 0.0 if after is None else max(0.0, after.timestamp() - clock.now())


def first_steps(workflow: Workflow, data: Mapping[str, Any], task: UUID) -> list[StepPlan]:
    """Return the steps of a new task; raise `Unresolved` if `data` lacks fields that it takes.

    Raises `Refused` if a first request would be too large to be sent. A first step whose condition does not
    hold is skipped, and so may be what comes after it. The templates of waiting steps
    are kept as they are: a value of the input is put in only when the request is built, so that no
    input can pose as a placeholder.
    """
    workflow.require(data)
    plans = []
    for step in workflow.steps:
        is_first = not step.after and not workflow.begins_conditionally
        request = resolve(step.template, data, {}) if is_first else step.template
        if is_first and not step.workflow and (reason := why_not_sent(request)):
            raise Refused(f"the request of {step.name} cannot be sent: {reason}")
        plans.append(
            StepPlan(
                name=step.name,
                agent=step.agent,
                action=step.action,
                after=step.after,
                request=request,
                state=_begins(step) if is_first else WAITING,
                undo_action=step.undo_action,
                undo_request=step.undo_request if step.undo_action else None,
                irreversible=step.irreversible,
                charges=resolve(step.charges, data, {}),
                loads=step.loads,
                flow=step.flow,
            )
        )
    return _begun(workflow, plans, data, task) if workflow.begins_conditionally else plans


def _begins(step: Declared) -> StepState:
    """Return as what a step begins that comes after no other."""
    return AWAITING if step.is_awaited else PENDING


def _begun(
    workflow: Workflow, plans: Sequence[StepPlan], data: Mapping[str, Any], task: UUID
) -> list[StepPlan]:
    """Return the steps of a new task, some of them skipped; those that may start have their requests."""
    views = [_view(number, task, plan) for number, plan in enumerate(plans)]
    follows = release(views, data, undoing=False)
    for problem in follows.broken:
        raise Refused(f"the request of {plans[problem.id].name} cannot be built: {problem.reason}")
    skipped = {number: {"state": StepState.SKIPPED} for number in follows.skipped}
    ready = {
        step.id: {"state": _begins(workflow.steps[step.id]), "request": step.request}
        for step in follows.released
    }
    changes: dict[int, dict[str, Any]] = {**skipped, **ready}
    return [replace(plan, **changes.get(number, {})) for number, plan in enumerate(plans)]
