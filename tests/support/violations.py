"""Violations of the audit's invariants: planted past every guard, and found."""

from io import StringIO

from django.db import connection

from orchestration.assurance.audit import runner, snapshot
from tests.support.database import PATIENTLY


def violations(rows=None):
    """Audit in the test's own transaction; return the violations as {(invariant, reference)}."""
    cut = snapshot.prepare()
    file = StringIO(newline="")
    for agent, entries in (rows.ledger if rows else {}).items():
        snapshot.write(agent, entries, file)
    snapshot.store(file)
    snapshot.fill(cut)
    return runner.find(rows.ledger if rows else ())


def plant(statement, **parameters):
    """Write past every guard: triggers and foreign keys are off, checks are dropped."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"{PATIENTLY}; SET LOCAL session_replication_role = replica")
        cursor.execute(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype IN ('c', 'u')"
            " AND conrelid::regclass::text ~ '^(orchestration|orders)_'"
        )
        for table, name in cursor.fetchall():
            cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
        cursor.execute("DROP INDEX IF EXISTS alert_once_open")
        cursor.execute(statement, parameters)
        assert cursor.rowcount, "nothing was planted"
