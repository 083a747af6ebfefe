"""What becomes of the due times of a schedule: which are submitted, skipped or missed, and what is next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import chain, islice, takewhile

from .due_times import Timing

ON_TIME = timedelta(seconds=60)  # what is later was missed, and only catch-up submits it
AT_ONCE = 10  # due times that one look submits: catch-up is not a burst
PAUSE = timedelta(seconds=1)  # before the next look at a schedule that has more to catch up
MOST_READ = 200  # due times that one look reads
WAIT_LEAST, WAIT_MOST = timedelta(seconds=1), timedelta(seconds=5)


class Overlap(StrEnum):
    """What happens at a due time while the run before has not ended."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"


class CatchUp(StrEnum):
    """Which of the due times are submitted that passed while nothing could be."""

    NONE = "none"
    LAST = "one"
    ALL = "all"


def reference(name: str, due: datetime) -> str:
    """Return the reference of a run: there is one task of it, however often it is submitted.

    >>> reference("nightly", datetime(2026, 3, 29, 1, tzinfo=UTC))
    'nightly/2026-03-29T01:00:00Z'
    """
    return f"{name}/{due.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a schedule is set to do. `within` is how late a due time is still caught up."""

    name: str
    timing: Timing
    overlap: str = Overlap.SKIP
    catch_up: str = CatchUp.LAST
    within: timedelta = timedelta(days=1)

    def starts(self, due: datetime) -> datetime:
        """Return when the run of a due time is submitted: its jitter later."""
        return due + self.timing.delay(reference(self.name, due))

    @property
    def window(self) -> timedelta:
        """Return how late a due time may be submitted."""
        return ON_TIME if self.catch_up == CatchUp.NONE else max(ON_TIME, self.within)


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """How far a schedule is: the due time that is next, and one that waits for the end of the last run."""

    due: datetime | None
    waiting: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What becomes of due times, where the schedule is then, and when it is looked at again."""

    position: Position
    look_at: datetime | None
    submitted: Sequence[datetime] = ()
    skipped: Sequence[datetime] = ()
    missed: int = 0


def begin(plan: Plan, now: datetime) -> Verdict:
    """Return where a schedule stands that is new, changed or resumed: at its first due time to come."""
    due = plan.timing.first_after(now)
    return Verdict(position=Position(due=due), look_at=plan.starts(due) if due else None)


def decide(plan: Plan, position: Position, now: datetime, *, going: bool) -> Verdict:
    """Decide about the due times that have come; `going`: the last run has not ended.

    A schedule that is looked at before its due time is planned anew: its clock may have gone back.
    """
    times, missed, due = _passed(plan, position.due, now)
    submitted: list[datetime] = []
    skipped: list[datetime] = []
    waiting = position.waiting
    if waiting is not None and not going:
        submitted, waiting, going = [waiting], None, True
    while times and len(submitted) < AT_ONCE:
        if not going or plan.overlap == Overlap.ALLOW:
            submitted.append(times.pop(0))
            going = True
        elif plan.overlap == Overlap.QUEUE and waiting is None:
            waiting = times.pop(0)
        elif plan.overlap == Overlap.QUEUE and plan.catch_up == CatchUp.ALL:
            break  # each has its turn to wait
        else:
            skipped.append(times.pop(0))
    position = Position(due=times[0] if times else due, waiting=waiting)
    return Verdict(
        position=position,
        look_at=_next_look(plan, position, now, pause=bool(submitted)),
        submitted=submitted,
        skipped=skipped,
        missed=missed,
    )


def _passed(
    plan: Plan, due: datetime | None, now: datetime
) -> tuple[list[datetime], int, datetime | None]:
    """Return the due times to decide about, how many were missed, and the due time after these.

    It reads no more than `MOST_READ` due times: what is left is for the next look. Of those beyond the
    window as many are counted.
    """
    if due is None or now < due:
        return [], 0, plan.timing.first_after(now)
    missed = 0
    rest: Iterator[datetime] = chain([due], plan.timing.after(due))
    outside = now - plan.window - timedelta(seconds=plan.timing.jitter)
    if due < outside:
        missed = sum(1 for _ in islice(takewhile(lambda time: time < outside, rest), MOST_READ))
        rest = plan.timing.after(outside - timedelta.resolution)
    times: list[datetime] = []
    due = None
    for due in islice(rest, MOST_READ):
        starts = plan.starts(due)
        if starts > now:
            break
        if starts < now - plan.window:
            missed += 1
        else:
            times.append(due)
    else:
        due = next(rest, None)
        if times and due and due <= now and plan.catch_up != CatchUp.ALL:
            return [], missed + len(times) - 1, times[-1]  # there may be a later one
    if plan.catch_up != CatchUp.ALL and times:
        return times[-1:], missed + len(times) - 1, due
    return times, missed, due


def _next_look(plan: Plan, position: Position, now: datetime, *, pause: bool) -> datetime | None:
    """Return when to look again: at the next due time, or soon at what waits or is to be caught up."""
    look = plan.starts(position.due) if position.due else None
    if position.waiting is not None:
        waited = (now - position.waiting) / 10
        soon = now + min(max(waited, WAIT_LEAST), WAIT_MOST)
        return soon if look is None or look <= now else min(look, soon)
    if look is not None and look <= now and pause:
        return now + PAUSE
    return look
