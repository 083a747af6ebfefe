"""The schedules as operators see them: when each is due, how its last task is, and what was skipped."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from ... import conf, registry
from ...database import clock
from ...database.capped_counts import CAP
from ...decisions import due_times
from ...models import Schedule, Submission, Task
from ...models.inbox import SUBMISSIONS
from ...payloads.moments import moment

PAGE = 50
NEXT = 5  # due times that are shown
SUMMED = (
    "paused_count", "late_count", "failing_count", "waiting_count", "submitted_sum", "skipped_sum",
    "missed_sum",
)  # fmt: skip
STATES = {
    "": "Any",
    "failing": "Cannot submit",
    "late": "Late",
    "waiting": "Waiting for the last task",
    "paused": "Paused",
}


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which schedules; empty means any. `after` is the name that the page begins behind."""

    workflow: str = ""
    state: str = ""
    after: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A schedule, its last task (or the submission that is to become it), and its next due times."""

    schedule: Schedule
    state: str
    task: Task | None
    submission: Submission | None
    next: Sequence[datetime]

    @property
    def words(self) -> str:
        """When it is due, in English."""
        return due_times.in_words(self.schedule.timing)

    @property
    def undeclared(self) -> bool:
        """Whether the code that declared it does so no longer."""
        return self.schedule.declared and self.schedule.name not in registry.schedules

    @property
    def last(self) -> datetime | None:
        """The due time of the last task, as clocks of its zone show it."""
        last = self.schedule.last_due
        return self.schedule.timing.local(last) if last else None

    @property
    def skipped(self) -> datetime | None:
        """The due time that was skipped last, as clocks of its zone show it."""
        skipped = self.schedule.skipped_due
        return self.schedule.timing.local(skipped) if skipped else None

    @property
    def behind(self) -> str:
        """What had not ended at the due time that was skipped last: the due time of that task."""
        name, _, due = self.schedule.skipped_behind.rpartition("/")
        try:
            of = self.schedule.timing.local(moment(due))
        except ValueError:
            return self.schedule.skipped_behind  # started by hand
        return f"{of:%d %b %H:%M}" if name == self.schedule.name else self.schedule.skipped_behind


@dataclass(frozen=True, kw_only=True)
class SchedulesPage:
    """A page, by name; `next` is the last name if more follow, `total` is counted to the cap."""

    now: datetime
    rows: Sequence[Row]
    next: str
    total: int


def filtered(filters: Filters, now: datetime) -> QuerySet[Schedule]:
    """Return the schedules of a workflow and in a state."""
    late = now - timedelta(seconds=conf.SCHEDULE_LATE_S)
    states = {
        "failing": ~Q(problem=""),
        "late": Q(problem="", look_at__lt=late),
        "waiting": Q(waiting_due__isnull=False),
        "paused": Q(paused=True),
    }
    rows = Schedule.objects.filter(states.get(filters.state, Q()))
    return rows.filter(workflow=filters.workflow) if filters.workflow else rows


def schedules(filters: Filters) -> SchedulesPage:
    """Return a page of schedules: five queries for any number of them."""
    now = clock.database_now()
    asked = filtered(filters, now)
    listed = list(asked.filter(name__gt=filters.after).order_by("name")[: PAGE + 1])
    more, listed = len(listed) > PAGE, listed[:PAGE]
    return SchedulesPage(
        now=now,
        rows=rows_of(listed, now),
        next=listed[-1].name if more else "",
        total=asked.order_by()[: CAP + 1].count(),
    )


def rows_of(listed: Collection[Schedule], now: datetime) -> list[Row]:
    """Return schedules with their last tasks: two queries for any number of them."""
    names = Q(
        workflow__in={row.workflow for row in listed},
        reference__in=[row.last_reference for row in listed if row.last_reference],
    )
    tasks = {
        (task.workflow, task.reference): task for task in Task.objects.filter(names).defer("data")
    }
    submissions = Submission.objects.filter(names, ~SUBMISSIONS.closed).defer("data")
    waiting = {(row.workflow, row.reference): row for row in submissions}
    return [_row(schedule, tasks, waiting, now) for schedule in listed]


def figures() -> dict[str, dict[str, int]]:
    """Return the figures of all schedules by workflow, summed: one query."""
    late = clock.database_now() - timedelta(seconds=conf.SCHEDULE_LATE_S)
    listed = Schedule.objects.order_by("workflow").values("workflow")
    rows: Iterable[Any] = listed.annotate(
        paused_count=Count("id", filter=Q(paused=True)),
        late_count=Count("id", filter=Q(problem="", look_at__lt=late)),
        failing_count=Count("id", filter=~Q(problem="")),
        waiting_count=Count("id", filter=Q(waiting_due__isnull=False)),
        submitted_sum=Sum("submitted"),
        skipped_sum=Sum("skipped"),
        missed_sum=Sum("missed"),
    )
    return {
        str(row["workflow"]): {key.partition("_")[0]: int(row[key]) for key in SUMMED}
        for row in rows
    }


def by_id(number: int) -> Schedule | None:
    """Return a schedule by its id."""
    return Schedule.objects.filter(id=number).first()


def workflows() -> list[str]:
    """Return the workflows that a schedule may be of: those that code declares."""
    return sorted(registry.workflows)


def _row(
    schedule: Schedule,
    tasks: Mapping[tuple[str, str], Task],
    waiting: Mapping[tuple[str, str], Submission],
    now: datetime,
) -> Row:
    named = schedule.workflow, schedule.last_reference
    task = tasks.get(named)
    times = islice(schedule.timing.after(now), 0 if schedule.paused else NEXT)
    return Row(
        schedule=schedule,
        state=_state(schedule, now),
        task=task,
        submission=None if task else waiting.get(named),
        next=[schedule.timing.local(due) for due in times],
    )


def _state(schedule: Schedule, now: datetime) -> str:
    if schedule.paused:
        return "paused"
    if schedule.problem:
        return "failing"
    late = timedelta(seconds=conf.SCHEDULE_LATE_S)
    if schedule.look_at and schedule.look_at < now - late:
        return "late"
    return "waiting" if schedule.waiting_due else "active"
