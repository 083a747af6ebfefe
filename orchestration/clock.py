"""The one clock: the database's. A process knows how far its own is off."""

import time

from django.db import connection

_offset = 0.0


def now() -> float:
    """Return the Unix time on the database's clock, as last measured."""
    return time.time() + _offset


def measure() -> float:
    """Measure the database's lead over this process's clock in seconds, keep it, and return it.

    Half the round trip is taken as the way there; on one network that is exact to milliseconds.
    """
    global _offset  # noqa: PLW0603 - one clock per process
    with connection.cursor() as cursor:
        before = time.time()
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        row = cursor.fetchone()
        after = time.time()
    _offset = float(row[0]) - (before + after) / 2 if row else 0.0
    return _offset
