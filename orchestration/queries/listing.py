"""The list of tasks: filters over indexes, pages by key."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from ..models import Step, Task
from ..states import LIVE_TASK_STATES, StepState
from .agents import agents, database_now
from .outlook import AgentView, Outlook, done_names, of_step, of_task, telling_step

PAGE = 50


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What the list is narrowed to; empty means any.

    `step` and `agent` are where a task is now: at a step in error, at work or due.
    `before` is the id of the last task of the page before.
    """

    state: str = ""
    workflow: str = ""
    step: str = ""
    agent: str = ""
    reference: str = ""
    alert: int | None = None
    overdue: bool = False
    before: UUID | None = None


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """One task of the list, and the step that says where it stands."""

    task: Task
    step: Step | None
    outlook: Outlook
    attempts: int


@dataclass(frozen=True, kw_only=True)
class TaskPage:
    """One page, newest first; `older` continues it."""

    now: datetime
    rows: Sequence[TaskRow]
    older: UUID | None


def tasks(filters: Filters) -> TaskPage:
    """Return the page of tasks that `filters` ask for, in five queries."""
    found = list(_ordered(_filtered(filters), filters).defer("data")[: PAGE + 1])
    page = found[:PAGE]
    steps: dict[UUID, list[Step]] = defaultdict(list)
    of_page = Step.objects.filter(task__in=[task.id for task in page])
    for step in of_page.defer("request", "result").order_by("id"):
        steps[step.task_id].append(step)
    now, known = database_now(), agents()
    return TaskPage(
        now=now,
        rows=[_row(task, steps[task.id], known, now) for task in page],
        older=page[-1].id if len(found) > PAGE else None,
    )


def _filtered(filters: Filters) -> QuerySet[Task]:
    found = Task.objects.all()
    if filters.state:
        found = found.filter(state=filters.state)
    if filters.workflow:
        found = found.filter(workflow=filters.workflow)
    if filters.reference:
        found = found.filter(reference__startswith=filters.reference)
    if filters.overdue:
        found = found.filter(overdue=True, state__in=LIVE_TASK_STATES)
    if filters.step or filters.agent or filters.alert:
        found = found.filter(id__in=_standing(filters))
    return found


def _standing(filters: Filters) -> QuerySet[Step, UUID]:
    """Return the tasks by the steps they stand at: each arm of the choice has a partial index."""
    steps = Step.objects.filter(
        Q(process_state=StepState.ERROR)
        | Q(process_state=StepState.PROCESSING)
        | Q(process_state=StepState.PENDING, run_after__isnull=True)
        | Q(process_state=StepState.PENDING, run_after__isnull=False)
    )
    if filters.alert:
        steps = Step.objects.filter(alert=filters.alert)
    if filters.step:
        steps = steps.filter(name=filters.step)
    if filters.agent:
        steps = steps.filter(agent=filters.agent)
    return steps.values_list("task_id", flat=True)


def _ordered(found: QuerySet[Task], filters: Filters) -> QuerySet[Task]:
    """Order by age, along the index that serves the filters, from where the last page ended.

    Ids are made in the order of time, so the primary key serves; within a state, the index on
    (state, created_at) does, without reading the other states' tasks.
    """
    order = ("-created_at", "-id") if filters.state else ("-id",)
    if filters.before and filters.state:
        last = Task.objects.filter(id=filters.before).values_list("created_at", flat=True).first()
        earlier = Q(created_at__lt=last) | Q(created_at=last, id__lt=filters.before)
        # the second condition is implied; it lets the index start there
        found = found.filter(earlier, created_at__lte=last) if last else found
    elif filters.before:
        found = found.filter(id__lt=filters.before)
    return found.order_by(*order)


def _row(task: Task, steps: list[Step], known: dict[str, AgentView], now: datetime) -> TaskRow:
    index = telling_step(steps)
    step = steps[index] if index is not None else None
    outlook = step and of_step(step, done=done_names(steps), agents=known, now=now)
    return TaskRow(
        task=task,
        step=step,
        outlook=outlook or of_task(task.state, "", None, 0),
        attempts=sum(step.attempt for step in steps),
    )
