"""The one clock: the database's. A process knows how far its own is off."""

import time

from django.db import connection

SLOWEST = 0.2  # seconds; a round trip that took longer says too little about the clock

_offset: float | None = None


def now() -> float:
    """Return the Unix time on the database's clock, as last measured."""
    return time.time() + (_offset or 0.0)


def measure() -> float:
    """Measure the database's lead over this process's clock in seconds, keep it, and return it.

    Half the round trip is taken as the way there; on one network that is exact to milliseconds. A
    slow one (the database was frozen) changes nothing, unless there is no older measurement.
    """
    global _offset  # noqa: PLW0603 - one clock per process
    with connection.cursor() as cursor:
        before, started = time.time(), time.monotonic()
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        row = cursor.fetchone()
        taken = time.monotonic() - started
    if row and (taken <= SLOWEST or _offset is None):
        _offset = float(row[0]) - (before + taken / 2)
    return _offset or 0.0
