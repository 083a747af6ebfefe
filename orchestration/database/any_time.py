"""Read every time that Postgres can hold: one row with an odd one must not take a whole list down.

The doors refuse times beyond the years 1900 to 9000. What is computed from others (a deadline, a wait), or
written by SQL, may lie where Python's calendar has ended; it is read as the end of that calendar.
"""

from datetime import UTC, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg2.extensions import PYDATETIMETZ, new_type, register_type

TIMESTAMPTZ = 1184  # the type's id in Postgres
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def _read(text: Any, cursor: Any) -> datetime | None:
    try:
        moment: datetime | None = PYDATETIMETZ(text, cursor)
    except (ValueError, OverflowError):
        return FIRST if text and ("BC" in text or text.startswith("-")) else LAST
    return moment


ANY_TIME = new_type((TIMESTAMPTZ,), "ANY_TIME", _read)


def read_any_time(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Have a new connection read times so; receives Django's signal `connection_created`."""
    if connection.vendor == "postgresql":
        register_type(ANY_TIME, connection.connection)
