"""Problems of schedules: of those that code declares, and of rows that applications and admins make."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from .. import registry
from ..applications import submissions
from ..applications.submissions import Posting
from ..decisions.due_times import Timing, shortest_gap, why_no_cron, why_no_zone
from ..decisions.schedule import CatchUp, Overlap, reference
from ..payloads.moments import EARLIEST_YEAR, LATEST_YEAR
from ..registry import suggest
from .problem import Problem, in_name, shown

MOST_SECONDS = 366 * 86_400
TEXTS = ("workflow", "due_field", "cron", "zone", "overlap", "catch_up", "fairness_key", "reply_to")
NUMBERS = ("catch_up_within", "jitter")
SAMPLE = datetime(2026, 1, 1, tzinfo=UTC)


class Mistake(NamedTuple):
    """What is wrong with a field, as a sentence; without a field, with several of them together."""

    field: str
    text: str


def problems(schedule: Any) -> Iterable[Problem]:
    """Yield what is wrong with a declared schedule."""
    yield from in_name("schedule", schedule.name)
    for field, text in mistakes(schedule):
        yield Problem("E018", f"its {field}: {text}" if field else text)


def require(schedule: Any) -> None:
    """Raise `ValueError` with all that is wrong with a schedule."""
    if texts := [problem.text for problem in problems(schedule)]:
        raise ValueError(f"schedule {shown(schedule.name)}: {' '.join(texts)}")


def mistakes(schedule: Any) -> Iterable[Mistake]:
    """Yield what is wrong with a schedule, but for its name: types first, then what values mean."""
    if malformed := list(_malformed(schedule)):
        yield from malformed
        return
    for field, known in (("overlap", Overlap), ("catch_up", CatchUp)):
        names = [kind.value for kind in known]
        if (value := getattr(schedule, field)) not in names:
            yield Mistake(field, f"{value!r} is unknown{suggest(value, names)}")
    if schedule.overlap == Overlap.SKIP and schedule.catch_up == CatchUp.ALL:
        text = "To catch up all due times, queue them or allow overlap: of skipped ones one runs."
        yield Mistake("catch_up", text)
    timed = list(_timing(schedule))
    yield from timed
    yield from _spans(schedule, timed=not timed)
    yield from _submission(schedule)


def _malformed(schedule: Any) -> Iterable[Mistake]:
    """Yield the fields that are of another type than they have to be."""
    for field in TEXTS:
        if not isinstance(value := getattr(schedule, field), str):
            yield Mistake(field, f"{shown(value)} is not a text.")
    for field in NUMBERS:
        value = getattr(schedule, field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield Mistake(field, f"{shown(value)} is not a number of seconds.")
    every = schedule.every
    if every is not None and (isinstance(every, bool) or not isinstance(every, int)):
        yield Mistake("every", f"{shown(every)} is not a whole number of seconds.")
    if not isinstance(schedule.data, Mapping):
        yield Mistake("data", f"{shown(schedule.data)} is not a JSON object.")
    if not (schedule.start_at is None or isinstance(schedule.start_at, datetime)):
        yield Mistake("start_at", f"{shown(schedule.start_at)} is not a time.")


def _timing(schedule: Any) -> Iterable[Mistake]:
    if text := why_no_zone(schedule.zone):
        yield Mistake("zone", text)
    if bool(schedule.cron) == (schedule.every is not None):
        yield Mistake("", "Give either a cron expression, or a number of seconds (every).")
    elif schedule.every is not None:
        yield from _recurrence(schedule)
    else:
        if text := why_no_cron(schedule.cron):
            yield Mistake("cron", text)
        if schedule.start_at is not None:
            yield Mistake("start_at", "Only what recurs at an interval has a first due time.")


def _recurrence(schedule: Any) -> Iterable[Mistake]:
    if not 1 <= schedule.every <= MOST_SECONDS:
        yield Mistake("every", f"It is between 1 and {MOST_SECONDS:,} seconds.")
    start = schedule.start_at
    if start is None:
        yield Mistake("start_at", "Say from which time on the seconds count.")
    elif start.tzinfo is None:
        yield Mistake("start_at", "The time has no time zone.")
    elif start.microsecond:
        yield Mistake("start_at", "The time is not a whole second.")
    elif not EARLIEST_YEAR <= start.year < LATEST_YEAR:
        yield Mistake("start_at", f"It is not in the years {EARLIEST_YEAR} to {LATEST_YEAR - 1}.")


def _spans(schedule: Any, *, timed: bool) -> Iterable[Mistake]:
    if not 60 <= schedule.catch_up_within <= 31 * 86_400:
        yield Mistake("catch_up_within", "Due times are caught up within 60 seconds to 31 days.")
    if not 0 <= schedule.jitter <= 86_400:
        yield Mistake("jitter", "It is between 0 and 86,400 seconds.")
    elif schedule.jitter and timed:
        timing = Timing(
            cron=schedule.cron, zone=schedule.zone, every=schedule.every, start_at=schedule.start_at
        )  # fmt: skip
        if schedule.jitter >= (gap := shortest_gap(timing, schedule.start_at or SAMPLE)):
            text = f"It must be less than the time between two due times, here {gap:g} seconds."
            yield Mistake("jitter", text)


def _submission(schedule: Any) -> Iterable[Mistake]:
    """Yield why a task of it could not be posted."""
    if len(schedule.due_field) > 60:
        yield Mistake("due_field", "It has more than 60 characters.")
    data = dict(schedule.data)
    if schedule.due_field:
        data[schedule.due_field] = SAMPLE.isoformat()
    posting = Posting(
        workflow=schedule.workflow, reference=reference("a-name", SAMPLE), data=data,
        priority=schedule.priority, fairness_key=schedule.fairness_key,
    )  # fmt: skip
    try:
        submissions.written(posting)
    except registry.NotRegistered as error:
        yield Mistake("workflow", f"{str(error)[0].upper()}{str(error)[1:]}.")
    except (LookupError, ValueError, TypeError) as error:
        text = str(error)
        yield Mistake("", f"{text[0].upper()}{text[1:].rstrip('.')}.")
