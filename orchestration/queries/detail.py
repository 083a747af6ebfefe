"""One task: its steps, their attempts, its events."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ..models import Attempt, Event, Step, Task
from ..models.history import EventKind
from ..states import Outcome, StepState
from ..workflow import step_key
from .agents import agents, database_now
from .outlook import Outlook, done_names, of_step, of_task, telling_step

MOST_ATTEMPTS = 200
MOST_EVENTS = 200
UNDER_WAY = (StepState.ERROR, StepState.PROCESSING, StepState.PENDING)


@dataclass(frozen=True, kw_only=True)
class StepDetail:
    """A step, its tries, and what happens next to it."""

    step: Step
    attempts: Sequence[Attempt]
    outlook: Outlook

    @property
    def in_error(self) -> bool:
        """Return whether an operator may resubmit it."""
        return self.step.process_state == StepState.ERROR

    @property
    def at_work(self) -> bool:
        """Return whether an agent has it now."""
        return self.step.locked_by is not None

    @property
    def refused(self) -> bool:
        """Return whether the service refused the last attempt for good: then the key changes."""
        return self.step.outcome == Outcome.REJECTED

    @property
    def next_generation(self) -> int:
        """Return the generation of the key that a resubmission uses."""
        return self.step.generation + (1 if self.refused else 0)

    @property
    def next_key(self) -> str:
        """Return the key that a resubmission uses."""
        step = self.step
        return step_key(step.task_id, step.name, step.direction, self.next_generation)


@dataclass(frozen=True, kw_only=True)
class TaskDetail:
    """All that the page of a task shows; the newest attempts and events, should there be many."""

    now: datetime
    task: Task
    outlook: Outlook
    steps: Sequence[StepDetail]
    events: Sequence[Event]
    cut: bool


def task_detail(task_id: UUID) -> TaskDetail | None:
    """Return a task's page, or None if there is no such task: seven queries."""
    task = Task.objects.filter(id=task_id).first()
    if task is None:
        return None
    now, known = database_now(), agents()
    steps = list(Step.objects.filter(task=task).select_related("alert").order_by("id"))
    attempts, attempts_cut = _attempts(steps)
    newest = Event.objects.filter(task=task).select_related("step").order_by("-id")
    events = list(newest[: MOST_EVENTS + 1])
    done = done_names(steps)
    details = [
        StepDetail(
            step=step,
            attempts=attempts[step.id],
            outlook=of_step(step, done=done, agents=known, now=now),
        )
        for step in steps
    ]
    return TaskDetail(
        now=now,
        task=task,
        outlook=_outlook(task, details),
        steps=details,
        events=events[:MOST_EVENTS],
        cut=attempts_cut or len(events) > MOST_EVENTS,
    )


def _attempts(steps: Sequence[Step]) -> tuple[dict[int, list[Attempt]], bool]:
    """Return the attempts of each step, first one first, and whether some were left out."""
    newest = Attempt.objects.filter(step__in=[step.id for step in steps]).order_by("-id")
    found = list(newest[: MOST_ATTEMPTS + 1])
    by_step: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in reversed(found[:MOST_ATTEMPTS]):
        by_step[attempt.step_id].append(attempt)
    return by_step, len(found) > MOST_ATTEMPTS


def _outlook(task: Task, details: Sequence[StepDetail]) -> Outlook:
    index = telling_step([detail.step for detail in details])
    telling = details[index] if index is not None else None
    under_way = sum(detail.step.process_state in UNDER_WAY for detail in details)
    return of_task(
        task.state,
        telling.step.name if telling else "",
        telling.outlook if telling else None,
        max(0, under_way - 1),
    )


def step_by_id(step_id: int) -> Step | None:
    """Return the step with its task, in whatever state it is by now."""
    return Step.objects.select_related("task").filter(id=step_id).first()


def who_resubmitted(step_id: int, attempt: int) -> Event | None:
    """Return the resubmission of `attempt` of a step, or the latest after it."""
    resubmissions = Event.objects.filter(
        step=step_id, kind=EventKind.RESUBMITTED, attempt__gte=attempt
    )
    return resubmissions.order_by("attempt", "id").first()
