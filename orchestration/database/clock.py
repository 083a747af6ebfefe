"""The database's clock, extrapolated from the last measurement by a steady clock."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from django.db import connection

SLOWEST = 0.2  # seconds; a slower round trip is too inexact, except to prove that the clock was set

# In SQL: the leader's verified time `now`, or the clock if that has gone back since; without `now` the
# clock. Evaluated once: a volatile value cannot be searched in an index.
VERIFIED = "least((SELECT clock_timestamp()), %(now)s)"

# Advances while the machine sleeps, where the system has such a clock.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

# the database's Unix time, and `steady()` at that moment
_measured: tuple[float, float] | None = None


def steady() -> float:
    """Return the seconds of a monotonic clock, which setting the time of day does not change."""
    return time.clock_gettime(_STEADY)


def now() -> float:
    """Return the Unix time on the database's clock, as last measured.

    Without a measurement (in a web process or a command) it is this process's own time.
    """
    return _at(steady())


def utc_now() -> datetime:
    """Return `now()` as a time in UTC."""
    return datetime.fromtimestamp(now(), UTC)


def ahead() -> float:
    """Return the seconds by which the database's Unix time is ahead of `steady()`."""
    return now() - steady()


def was_set(since: float) -> bool:
    """Return whether the database's clock was set since `ahead()` was `since`."""
    return abs(ahead() - since) > SLOWEST


def follow(seconds: float) -> None:
    """Adopt the value of `ahead()` that another process of this machine has measured."""
    global _measured  # noqa: PLW0603 - one clock per process
    _measured = seconds, 0.0


def _at(moment: float) -> float:
    if _measured is None:
        return time.time()
    there, at = _measured
    return there + moment - at


def lead() -> float:
    """Return the database's lead over this process's time of day in seconds; measure it if necessary."""
    if _measured is None:
        measure()
    return now() - time.time()


def measure(ask: Callable[[], float] | None = None) -> None:
    """Measure the database's clock.

    `ask` returns the database's Unix time, by any statement that does not wait. The answer is assumed to
    be half a round trip old, which is exact to milliseconds on one network. A slow round trip (a frozen
    database) changes nothing, unless there is no measurement yet, or it is off by more than the round
    trip: then the database's clock was set.
    """
    global _measured  # noqa: PLW0603 - one clock per process
    connection.ensure_connection()  # connecting is not part of the round trip
    started = steady()
    there = (ask or _ask)()
    taken = steady() - started
    halfway = started + taken / 2
    if taken <= SLOWEST or _measured is None or abs(there - _at(halfway)) > taken:
        _measured = there, halfway


def database_now() -> datetime:
    """Return the database's time, queried now, to measure ages and countdowns."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now


def _ask() -> float:
    return database_now().timestamp()
