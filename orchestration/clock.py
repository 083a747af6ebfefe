"""The one clock: the database's. A process knows how far its own is off."""

import time
from collections.abc import Callable

from django.db import connection

SLOWEST = 0.2  # seconds; a round trip that took longer says too little about the clock

_offset: float | None = None


def now() -> float:
    """Return the Unix time on the database's clock, as last measured."""
    return time.time() + (_offset or 0.0)


def lead() -> float:
    """Return the database's lead over this process's clock in seconds; measure it the first time."""
    return measure() if _offset is None else _offset


def measure(ask: Callable[[], float] | None = None) -> float:
    """Measure the database's lead over this process's clock in seconds, keep it, and return it.

    `ask` asks the database for its Unix time, by any statement that waits for nothing. Half the
    round trip is taken as the way there; on one network that is exact to milliseconds. A slow one
    (the database was frozen) changes nothing, unless there is no older measurement.
    """
    global _offset  # noqa: PLW0603 - one clock per process
    connection.ensure_connection()  # connecting is not part of the round trip
    before, started = time.time(), time.monotonic()
    there = (ask or _ask)()
    taken = time.monotonic() - started
    if taken <= SLOWEST or _offset is None:
        _offset = there - (before + taken / 2)
    return _offset


def _ask() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(cursor.fetchone()[0])
