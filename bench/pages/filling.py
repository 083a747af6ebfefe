"""Writes large tables fast: without triggers, foreign keys and, until the end, plain indexes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

TABLES = (
    "orchestration_task",
    "orchestration_step",
    "orchestration_attempt",
    "orchestration_event",
    "orchestration_incidenthit",
    "orchestration_wait",
    "orders_order",
)

SETTINGS = {
    "session_replication_role": "replica",
    "statement_timeout": "0",
    "lock_timeout": "0",  # an index may have to wait until an autovacuum gives way
    "maintenance_work_mem": "'512MB'",
    "synchronous_commit": "off",
}

PLAIN_INDEXES = """
SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
WHERE t.relname = ANY(%(tables)s)
  AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid)
"""


@contextmanager
def filling(say: Callable[[str], None]) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """Yield a cursor that writes large tables fast, and a function that reports progress."""
    began = time.monotonic()

    def did(what: str) -> None:
        say(f"{time.monotonic() - began:6.0f} s  {what}")

    with connection.cursor() as cursor:
        for name, value in SETTINGS.items():
            cursor.execute(f"SET {name} = {value}")
        with _without_indexes(cursor, did):
            yield cursor, did
        cursor.execute("VACUUM ANALYZE")
        did("vacuum")
        for name in SETTINGS:
            cursor.execute(f"RESET {name}")


@contextmanager
def _without_indexes(cursor: Any, did: Callable[[str], None]) -> Iterator[None]:
    """Drop the plain indexes of the large tables, and create them again afterwards."""
    cursor.execute(PLAIN_INDEXES, {"tables": list(TABLES)})
    indexes = cursor.fetchall()
    for name, _ in indexes:
        cursor.execute(f"DROP INDEX {name}")
    try:
        yield
    finally:
        for name, definition in indexes:
            cursor.execute(definition)
            did(f"index {name}")
