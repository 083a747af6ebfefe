"""When a schedule is due: by a cron expression in a time zone, or at an interval from a date."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

FIELDS = 5  # minute, hour, day of month, month, day of week: seconds are for `every`
COMPARED = 100  # due times whose distance jitter must stay below
ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)
FOREVER = datetime(9000, 1, 1, tzinfo=UTC)  # Postgres goes on where Python's calendar ends


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """The due times of a schedule: of `cron` in the time zone `zone`, or `every` seconds from `start_at`.

    What a cron expression means when clocks are changed is as in Debian's cron. Of a fixed time that does not
    exist, it is due at the end of the gap; of one that exists twice, at the first. An expression whose minute
    or hour begins with `*` follows the time that passes.

    >>> berlin = Timing(cron="30 2 * * *", zone="Europe/Berlin")
    >>> night = datetime(2026, 3, 28, 12, tzinfo=UTC)  # clocks go from 2:00 to 3:00
    >>> [due.isoformat() for due in islice(berlin.after(night), 2)]
    ['2026-03-29T01:00:00+00:00', '2026-03-30T00:30:00+00:00']
    """

    cron: str = ""
    zone: str = "UTC"
    every: int | None = None
    start_at: datetime | None = None
    jitter: float = 0.0

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the due times after a moment, in UTC, each once and in order."""
        if self.every is None:
            return self._by_cron(moment)
        return self._by_interval(moment, timedelta(seconds=self.every))

    def first_after(self, moment: datetime) -> datetime | None:
        """Return the first due time after a moment; None if there is none."""
        return next(self.after(moment), None)

    def delay(self, reference: str) -> timedelta:
        """Return the jitter of a run: the same whenever it is asked for, and different for each reference."""
        digest = hashlib.sha256(reference.encode()).digest()
        return timedelta(seconds=self.jitter * int.from_bytes(digest[:8]) / 2**64)

    def local(self, due: datetime) -> datetime:
        """Return a due time as clocks of the schedule's zone show it."""
        return due.astimezone(ZoneInfo(self.zone))

    def _by_cron(self, moment: datetime) -> Iterator[datetime]:
        last = moment
        for local in CronSim(self.cron, moment.astimezone(ZoneInfo(self.zone))):
            due = local.astimezone(UTC)
            if due >= FOREVER:
                return
            if due > last:  # several times of a gap are one; the first of a double hour may be over
                yield due
                last = due

    def _by_interval(self, moment: datetime, every: timedelta) -> Iterator[datetime]:
        first = self.start_at or moment
        passed = (moment - first) // every if moment >= first else -1
        due = first + (passed + 1) * every
        while due < FOREVER:
            yield due
            due += every


def why_no_cron(text: str) -> str:
    """Return why a text is not a cron expression with a due time to come, as a sentence; empty if it is."""
    if len(text.split()) != FIELDS:
        return "A cron expression has five fields: minute, hour, day of month, month, day of week."
    try:
        if next(CronSim(text, ANY_DAY), None) is None:
            return "No time matches this cron expression."
    except CronSimError as error:
        return f"This is not a cron expression: {str(error).lower()}."
    return ""


def why_no_zone(name: str) -> str:
    """Return why a text is not a time zone of this machine, as a sentence; empty if it is."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return f"There is no time zone {name!r}. Name one as “Europe/Berlin” or “UTC”."
    return ""


def shortest_gap(timing: Timing, now: datetime) -> float:
    """Return the shortest time between two of the next due times, in seconds."""
    times = list(islice(timing.after(now), COMPARED))
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    return min(gaps, default=float("inf"))


def in_words(timing: Timing) -> str:
    """Return when a schedule is due, in English.

    >>> in_words(Timing(cron="0 2 * * *"))
    'At 02:00 every day'
    >>> in_words(Timing(every=5400))
    'Every 90 minutes'
    """
    if timing.every is None:
        return CronSim(timing.cron, ANY_DAY).explain()
    units = ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next((size, unit) for size, unit in units if timing.every % size == 0)
    count = timing.every // size
    return f"Every {unit}" if count == 1 else f"Every {count} {unit}s"
