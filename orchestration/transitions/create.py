"""Create tasks and their steps: nothing → pending or waiting (P5, P19, P20)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from .. import registry
from ..applications import outbox
from ..applications.outbox import StatusUpdate
from ..database import clock, prepared, sql
from ..decisions.progress import StepPlan, StepView, task_state
from ..models import Step
from ..models.fields import time_ordered_id
from ..models.inbox import StatusKind
from ..models.retention import content_hash
from ..payloads.placeholders import Unresolved, resolve
from ..states import Direction, StepState, TaskState
from ..workflows.workflow import Refused, Workflow
from . import moves, waits
from .first_steps import first_steps, view
from .new_steps import NewStep, inserting
from .waits import NewTime, NewWait, Until

PENDING, AWAITING = StepState.PENDING, StepState.AWAITING
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
    contact, value, currency, ended_at, about_workflow, about_reference{more})
SELECT id, workflow, reference, state, priority, fairness_key, data, {content_hash("data")}, reply_to,
    owner_application, 0, false,
    {due},
    (SELECT coalesce(sum(seconds), 0) FROM orchestration_clockjump), clock_timestamp(),
    EXISTS (SELECT 1 FROM orchestration_application a WHERE a.name = reply_to AND a.notify_steps),
    label, contact, value, currency, CASE state WHEN 'processed' THEN clock_timestamp() END,
    about_workflow, about_reference{more}
FROM unnest(%(ids)s::uuid[], %(workflows)s::text[], %(references)s::text[],
    %(priorities)s::smallint[], %(fairness_keys)s::text[], %(data)s::jsonb[], %(reply_to)s::text[],
    %(allowed)s::float8[], %(owner_applications)s::text[], %(labels)s::text[], %(contacts)s::text[],
    %(amounts)s::bigint[], %(currencies)s::text[], %(states)s::text[], %(about_workflows)s::text[],
    %(about_references)s::text[]{values})
    AS t (id, workflow, reference, priority, fairness_key, data, reply_to, time_allowed,
        owner_application, label, contact, value, currency, state, about_workflow, about_reference{names})
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
    """What a submission, or a step with children, asks for.

    `id` is given for children, and where a task had one before a restore.
    """

    workflow: str
    reference: str
    data: dict[str, Any]
    reply_to: str = ""
    priority: int = 0
    fairness_key: str = ""
    about_workflow: str = ""
    about_reference: str = ""
    id: UUID | None = None
    parent: Parent | None = None


class Planned(NamedTuple):
    """A task to be, with its steps; those that are pending begin at the `earliest` time."""

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
    if any(plan.state == AWAITING or plan.until for task in planned for plan in task.steps):
        _wait(planned)
    outbox.write(
        [
            StatusUpdate(task=task.id, kind=kind)
            for task in planned
            if task.item.reply_to or task.workflow.owner_application
            for kind in (ENDED_AT_ONCE if task.state == TaskState.PROCESSED else RECEIVED)
        ],
        [task.id for task in planned if task.workflow.owner_application],
    )


def _wait(planned: Sequence[Planned]) -> None:
    """Write what first steps of new tasks await from people and signals, and which wait for their time."""
    waiting = {
        (task.id, plan.name): (task, plan)
        for task in planned
        for plan in task.steps
        if plan.state == AWAITING or plan.until
    }
    rows = Step.objects.filter(task__in={task for task, _ in waiting}, direction=Direction.DO)
    opened, timed = [], []
    for number, task_id, name in rows.values_list("id", "task_id", "name"):
        if (task_id, name) not in waiting:
            continue
        task, plan = waiting[task_id, name]
        step = view(number, task_id, plan)
        if plan.until:
            timed.append(NewTime(step, Until(*plan.until)))
        else:
            opened.append(NewWait(step=step, until=_ends_by(step, task.item.data)))
    moves.TIMED.write([time.step for time in timed], seconds=[time.seconds for time in timed])
    waits.write_times(timed, ())
    waits.write(opened, ())


def _ends_by(step: StepView, data: Mapping[str, Any]) -> Until:
    try:
        return waits.ends_by(step, [step], data)
    except Unresolved as error:
        raise Refused(f"the step {step.name} cannot be awaited: {error}") from None


def plan(item: NewTask) -> Planned:
    """Return a task to be with its steps; raise as `create` does."""
    workflow = registry.get(registry.workflows, "workflow", item.workflow)
    task = item.id or time_ordered_id()
    earliest = workflow.earliest(item.data)
    steps = first_steps(workflow, item.data, task, earliest)
    return Planned(
        id=task, item=item, workflow=workflow, earliest=earliest, steps=steps,
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
            "allowed": [task.workflow.time_allowed + _delay(task) for task in planned],
            "owner_applications": [task.workflow.owner_application for task in planned],
            "labels": [card.label for card in cards],
            "contacts": [card.contact for card in cards],
            "amounts": [card.amount for card in cards],
            "currencies": [card.currency for card in cards],
            "states": [task.state.value for task in planned],
            "about_workflows": [item.about_workflow for item in items],
            "about_references": [item.about_reference for item in items],
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


def _delay(task: Planned) -> float:
    """Return the seconds until a task may begin, but for steps that wait for their time: they add that."""
    if task.earliest is None or any(plan.until for plan in task.steps):
        return 0.0
    return max(0.0, task.earliest.timestamp() - clock.now())
