"""Load tasks and the services' ledgers into temporary tables for the checks.

The tables live for one transaction, as a pooler may give each another session. The ledgers are read
before it, into a file, so that no transaction is open during a call. So a service may have done more by
the time of the snapshot than its ledger shows. Checks for missing entries compare only *quiet* tasks,
which have not changed since before the ledgers were read.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import IO
from uuid import UUID

from django.db import connection

from .. import registry
from ..agents.service_ledger import LedgerEntry
from ..database import sql

DROP = """
DROP VIEW IF EXISTS pg_temp.audit_step, pg_temp.audit_data, pg_temp.audit_submission,
    pg_temp.audit_request, pg_temp.audit_message, pg_temp.audit_lost;
DROP TABLE IF EXISTS pg_temp.audit_task, pg_temp.audit_effect;
"""

PREPARE = (
    DROP
    + """
CREATE TEMPORARY TABLE audit_effect (
    agent text, key text, task uuid, step text, direction text, generation int,
    reference text, kind text, amount bigint, currency text, detail jsonb, result jsonb
);
CREATE TEMPORARY TABLE audit_task (
    id uuid, workflow text, reference text, state text, undoing boolean, reply_to text,
    statuses int, owner_application text, owner_statuses int, unsent int, quiet boolean,
    steps int, failed boolean, done boolean, ended boolean, fresh boolean, moving boolean
);
CREATE TEMPORARY VIEW audit_step AS
SELECT s.id, s.task_id AS task, t.reference, t.workflow, t.state AS task_state, t.quiet, s.name,
    s.direction, s.agent, s.process_state AS state, s.after, s.request, s.attempt, s.generation,
    s.failure_count, s.outcome, s.locked_by, s.complete_by, s.run_after, s.resolve_by, s.held_by_id,
    s.dispatched_at, s.ended_at, s.alert_id, s.undo_action, s.attempt > 0 AS tried,
    s.in_doubt OR s.locked_by IS NOT NULL OR (s.process_state NOT IN ('processed', 'skipped')
        AND (s.outcome IN ('unknown', 'expired') OR s.error_code = 'expired')) AS in_doubt
FROM orchestration_step s JOIN audit_task t ON t.id = s.task_id;
-- Applications' checks read these instead of the engine's tables. They hold every row, whether its
-- task is in question or not.
CREATE TEMPORARY VIEW audit_data AS
SELECT id AS task, workflow, reference, data FROM orchestration_task;
CREATE TEMPORARY VIEW audit_submission AS
SELECT workflow, reference, refused_at IS NOT NULL AS refused FROM orchestration_submission;
CREATE TEMPORARY VIEW audit_request AS
SELECT request AS id, done_at IS NULL AS pending FROM orchestration_taskrequest;
CREATE TEMPORARY VIEW audit_message AS
SELECT reply_to, workflow, reference, detail FROM orchestration_statusmessage;
-- What a restore lost, its effects settled by `manage.py reconcile`: there is an alert about each.
CREATE TEMPORARY VIEW audit_lost AS
SELECT DISTINCT e.reference FROM orchestration_alert a
JOIN audit_effect e ON e.task = split_part(a.fingerprint, '/', 2)::uuid
WHERE starts_with(a.fingerprint, 'late_effect/') AND split_part(a.fingerprint, '/', 3) = 'lost'
"""
)

FILL = """
INSERT INTO audit_task
SELECT t.id, t.workflow, t.reference, t.state, t.undo_at IS NOT NULL, t.reply_to, t.statuses,
    t.owner_application, t.statuses + t.owner_lead, coalesce(m.unsent, 0),
    NOT coalesce(s.at_work, false)
        AND greatest(t.created_at, t.ended_at, t.undo_at, s.changed_at) < %(cut)s,
    coalesce(s.steps, 0), s.failed, s.done, s.ended, s.fresh, s.moving
FROM orchestration_task t
LEFT JOIN (
    SELECT task_id, count(*) AS steps,
        max(greatest(dispatched_at, ended_at, pending_since)) AS changed_at,
        bool_or(locked_by IS NOT NULL) AS at_work,
        bool_or(process_state = 'error') AS failed,
        bool_and(process_state IN ('processed', 'skipped')) AS done,
        bool_and(process_state IN ('processed', 'skipped', 'cancelled')) AS ended,
        bool_and(process_state IN ('waiting', 'pending')) AS fresh,
        bool_or(process_state IN ('pending', 'processing')) AS moving
    FROM orchestration_step GROUP BY task_id
) s ON s.task_id = t.id
LEFT JOIN (
    SELECT task_id, reply_to, max(number) AS unsent
    FROM orchestration_statusmessage GROUP BY task_id, reply_to
) m ON m.task_id = t.id AND m.reply_to = t.owner_application
WHERE %(since)s::timestamptz IS NULL
   OR greatest(t.created_at, t.ended_at, t.undo_at, s.changed_at) >= %(since)s
"""


class Unreadable(Exception):
    """A service's ledger could not be read; the text names the agent and the reason."""


def now() -> datetime:
    """Return the database's time."""
    found: datetime = sql.run("SELECT clock_timestamp()", {})[0][0]
    return found


def prepare() -> datetime:
    """Create the tables for this transaction; return the database's time."""
    sql.run(PREPARE, {})
    return now()


def fill(cut: datetime, since: datetime | None = None) -> int:
    """Load the tasks to check: all, or those that changed `since`; return how many.

    Those that have not changed since `cut` are quiet.
    """
    sql.run(FILL, {"cut": cut, "since": since})
    sql.run("ANALYZE audit_task", {})
    return int(sql.run("SELECT count(*) FROM audit_task", {})[0][0])


def store(file: IO[str]) -> None:
    """Load the ledgers in a file that `read_ledgers` has filled."""
    file.seek(0)
    with connection.cursor() as cursor:
        cursor.copy_expert("COPY audit_effect FROM STDIN WITH (FORMAT csv)", file)
    sql.run("ANALYZE audit_effect", {})


def write(agent: str, entries: Iterable[LedgerEntry], file: IO[str]) -> int:
    """Write a service's ledger to a file, so that memory does not grow with it; return how many entries."""
    count, writer = 0, csv.writer(file)
    for entry in entries:
        writer.writerow(_row(agent, entry))
        count += 1
    return count


def read_ledgers(file: IO[str], report: Callable[[str], None]) -> set[str]:
    """Write the ledgers of all agents that have one to a file; return those agents. Raises `Unreadable`."""
    read = set()
    for name, agent in sorted(registry.agents.items()):
        try:
            entries = agent("audit").ledger()
            if entries is None:
                continue
            report(f"{name}: {write(name, _named(entries), file):,} entries in its ledger")
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise Unreadable(f"the ledger of {name}: {type(error).__name__}: {error}") from error
        read.add(name)
    return read


def _named(entries: Iterable[LedgerEntry]) -> Iterator[LedgerEntry]:
    """Pass entries on; raise `TypeError` for an object of another type, which is the agent's bug."""
    for entry in entries:
        if not isinstance(entry, LedgerEntry):
            raise TypeError(f"{entry!r} is not a LedgerEntry")
        yield entry


def _row(agent: str, entry: LedgerEntry) -> tuple[object, ...]:
    task, step, direction, generation = _parts(entry.key)
    return (
        *(agent, entry.key, task, step, direction, generation),
        *(entry.reference, entry.kind, entry.amount, entry.currency),
        *(None if one is None else json.dumps(one) for one in (entry.detail, entry.result)),
    )


def _parts(key: str | None) -> tuple[str | None, str | None, str | None, str | None]:
    """Return task, step, direction and generation of an engine's key; None for any other."""
    parts = (key or "").split(":")
    if len(parts) != 4 or not parts[3].isdecimal() or len(parts[3]) > 9:
        return None, None, None, None
    try:
        UUID(parts[0])
    except ValueError:
        return None, None, None, None
    return parts[0], parts[1], parts[2], parts[3]
