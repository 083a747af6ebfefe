"""A clock that stands still: in the database's session of a test, and in its process.

The engine has one clock, the database's. Functions of the same names in a schema of their own, which a
session finds first, take its place: `clock_timestamp()` and the two others return the setting `sas.now` of
the session, if it has that. Columns whose default is the present time are set to use them; sessions without
the setting notice nothing. `CURRENT_TIMESTAMP` is a word, not a function, and remains the real time.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from unittest.mock import patch

from django.db import DatabaseError

from ..database import clock, sql

SCHEMA = "sas_testing"
FUNCTIONS = ("clock_timestamp", "statement_timestamp", "now")

FUNCTION = """
CREATE OR REPLACE FUNCTION {schema}.{name}() RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT coalesce(nullif(current_setting('sas.now', true), '')::timestamptz, pg_catalog.{name}()) $$;
"""
PRESENT = """
SELECT format('ALTER TABLE %%s ALTER COLUMN %%I SET DEFAULT {schema}.%%s',
    d.adrelid::regclass, a.attname, pg_get_expr(d.adbin, d.adrelid))
FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
WHERE pg_get_expr(d.adbin, d.adrelid) = ANY(%(calls)s)
"""
BEGIN = """
SELECT set_config('search_path',
    %(schema)s || ', ' || current_setting('search_path') || ', pg_catalog', false)
"""
SET = "SELECT set_config('sas.now', %(now)s, false)"
END = "RESET search_path; RESET sas.now;"


def install() -> None:
    """Make the functions in the database of the tests, and have the defaults of columns use them."""
    sql.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}", {})
    for name in FUNCTIONS:
        sql.run(FUNCTION.format(schema=SCHEMA, name=name), {})
    calls = [f"{name}()" for name in FUNCTIONS]
    for (statement,) in sql.run(PRESENT.format(schema=SCHEMA), {"calls": calls}):
        sql.run(statement, {})


def ensure() -> None:
    """Make the functions if they are gone, as when they were made in a transaction that was rolled back."""
    ((function,),) = sql.run(f"SELECT to_regproc('{SCHEMA}.{FUNCTIONS[0]}')::text", {})
    if function is None:
        install()


class FakeClock:
    """The time of a test, which only the test moves. `now` is aware; `start` is where it began."""

    def __init__(self, start: datetime) -> None:
        self.start = self.now = start
        self._steady = clock.steady()

    @property
    def elapsed(self) -> float:
        """The seconds since the start."""
        return (self.now - self.start).total_seconds()

    def steady(self) -> float:
        """Return the steady clock's seconds, which move as the time does."""
        return self._steady + self.elapsed

    def move_to(self, moment: datetime) -> None:
        """Set the time; it never goes back."""
        self.now = max(moment, self.now)
        sql.run(SET, {"now": self.now.isoformat()})

    def move(self, seconds: float) -> None:
        """Move the time on."""
        self.move_to(self.now + timedelta(seconds=seconds))


@contextmanager
def frozen() -> Iterator[FakeClock]:
    """Have the time stand still in this block, from the database's present on."""
    ensure()
    fake = FakeClock(clock.database_now())
    ahead = fake.start.timestamp() - fake.steady()
    sql.run(BEGIN, {"schema": SCHEMA})
    fake.move(0)
    try:
        with (
            patch.object(clock, "steady", fake.steady),
            patch.object(clock, "_measured", (ahead, 0.0)),
        ):
            yield fake
    finally:
        with suppress(DatabaseError):  # in a failed transaction; its end does the same
            sql.run(END, {})
