"""The one clock: the database's, reckoned from the last measurement by a clock that no one sets."""

import time
from collections.abc import Callable

from django.db import connection

SLOWEST = 0.2  # seconds; a round trip that took longer can only prove the clock wrong

# Goes on while a laptop sleeps, where there is such a clock.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_measured: tuple[float, float] | None = (
    None  # the database's Unix time, and `steady()` at that moment
)


def steady() -> float:
    """Return seconds of a clock that only goes forward, whatever happens to the time of day."""
    return time.clock_gettime(_STEADY)


def now() -> float:
    """Return the Unix time on the database's clock, as last measured.

    A process that never measured (a web process, a command) has only its own clock.
    """
    return _at(steady())


def ahead() -> float:
    """Return the seconds by which the database's Unix time is ahead of `steady()`."""
    return now() - steady()


def follow(seconds: float) -> None:
    """Be so far ahead of `steady()`, as another process of this machine has measured it."""
    global _measured  # noqa: PLW0603 - one clock per process
    _measured = seconds, 0.0


def _at(moment: float) -> float:
    if _measured is None:
        return time.time()
    there, at = _measured
    return there + moment - at


def lead() -> float:
    """Return the database's lead over this process's time of day in seconds; measure it if need be."""
    if _measured is None:
        measure()
    return now() - time.time()


def measure(ask: Callable[[], float] | None = None) -> None:
    """Measure what time it is on the database's clock.

    `ask` asks the database for its Unix time, by any statement that waits for nothing. Half the
    round trip is taken as the way there; on one network that is exact to milliseconds. A slow one
    (the database was frozen) changes nothing, unless there is no older measurement, or that is off
    by more than the round trip took: then the database's clock was set.
    """
    global _measured  # noqa: PLW0603 - one clock per process
    connection.ensure_connection()  # connecting is not part of the round trip
    started = steady()
    there = (ask or _ask)()
    taken = steady() - started
    halfway = started + taken / 2
    if taken <= SLOWEST or _measured is None or abs(there - _at(halfway)) > taken:
        _measured = there, halfway


def _ask() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(cursor.fetchone()[0])
