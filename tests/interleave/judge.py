"""Invariants at the end of a run: the audit, the services' ledger, and the messages sent."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from tempfile import TemporaryFile

from django.db import connection, transaction

from orchestration import registry
from orchestration.applications.audits import Scope
from orchestration.assurance.audit import runner, snapshot, tables
from orchestration.database import clock, sql
from orchestration.models import Event, Task
from orchestration.models.history import EventKind
from orchestration.models.retention import removal_key

from . import children, skips
from .services import LEDGER

LOADS = (tables.SLICE, tables.STEPS, tables.ATTEMPTS, tables.EVENTS, tables.TASKS, tables.EFFECTS)
STEPS = """
SELECT t.id::text, t.reference, s.name, s.direction, s.process_state, s.agent, s.generation, s.done_by,
    CASE WHEN t.state = 'undone' THEN 'stands on an undone task'
        WHEN u.process_state = 'processed' THEN 'stands, and was undone alone' END
FROM orchestration_task t JOIN orchestration_step s ON s.task_id = t.id
LEFT JOIN orchestration_step u ON u.task_id = t.id AND u.name = s.name AND u.direction = 'undo'
"""
REQUESTS = """
SELECT s.id, s.attempt, s.request::text, t.data ->> 'name', t.reference
FROM orchestration_task t JOIN orchestration_step s ON s.task_id = t.id
WHERE s.attempt > 0 AND s.direction = 'do' ORDER BY s.id
"""
TWICE = f"""
SELECT t.reference FROM orchestration_task t
JOIN orchestration_removedtask r ON r.key = {removal_key("t.workflow", "t.reference")}
"""
# Undone by a request about an attempt that was resubmitted before.
STALE = """
SELECT t.reference, s.name, a.attempt
FROM orchestration_event u JOIN orchestration_task t ON t.id = u.task_id
JOIN LATERAL (
    SELECT e.* FROM orchestration_event e WHERE e.task_id = u.task_id AND e.kind = 'undo_asked'
        AND e.id < u.id AND e.actor = u.actor ORDER BY e.id DESC LIMIT 1
) a ON true
JOIN orchestration_step s ON s.id = a.step_id
WHERE u.kind = 'undo' AND EXISTS (SELECT FROM orchestration_event r WHERE r.step_id = a.step_id
    AND r.kind = 'resubmitted' AND r.id BETWEEN a.id AND u.id)
"""


def problems(*, calm: bool) -> list[str]:
    """Return the problems after a run; `calm`: it had no fault."""
    troubles = [
        *_ledger(),
        *_sent(),
        *_payloads(),
        *skips.problems(),
        *children.problems(),
        *_histories(calm=calm),
        *_audit(),
    ]
    return sorted(dict.fromkeys(troubles))


def _sent() -> Iterator[str]:
    for (step, attempt), count in sorted(LEDGER.sent.items()):
        if count > 1:
            yield f"sent twice: attempt {attempt} of {LEDGER.names[step]}"


def _payloads() -> Iterator[str]:
    """Compare what was sent with the steps' requests, and with the input of their tasks."""
    for step, attempt, request, name, reference in sql.run(REQUESTS, {}):
        payload = LEDGER.payloads.get((step, attempt))
        if payload is not None and payload != json.loads(request):
            yield f"sent another request than is stored: {LEDGER.names[step]}"
        if payload is not None and payload.get("to", name) != name:
            yield f"sent {payload['to']!r}, and the input of {reference} has {name!r}"


def _ledger() -> Iterator[str]:
    """Compare what the services did with what the steps say."""
    by_step = defaultdict(set)
    by_reference = defaultdict(set)
    for key in LEDGER.effects:
        task, name, direction, _ = key.split(":")
        by_step[task, name, direction].add(key)
        by_reference[LEDGER.references[key], name, direction].add(task)
    for (task, name, direction), keys in by_step.items():
        if len(keys) > 1:
            yield f"done under {len(keys)} keys: {name} ({direction}) of {_reference(task)}"
    for (reference, name, direction), tasks in by_reference.items():
        if len(tasks) > 1:
            yield f"done for {len(tasks)} tasks: {name} ({direction}) of {reference}"
    yield from _steps(by_step)


def _steps(by_step: dict[tuple[str, str, str], set[str]]) -> Iterator[str]:
    """Compare each step with the keys under which the services did it."""
    for task, reference, name, direction, step_state, agent, generation, by, undone in sql.run(
        STEPS, {}
    ):
        keys = by_step.get((task, name, direction), set())
        if direction == "do" and undone:
            standing = [key for key in keys if key not in LEDGER.taken_back]
            if standing:
                yield f"{undone}: {name} of {reference}"
        if step_state == "skipped" and keys:
            yield f"skipped, and it was done: {name} ({direction}) of {reference}"
        if step_state == "processed" and agent and not keys and not by:
            yield f"processed without effect: {name} ({direction}) of {reference}"
        if (
            step_state == "processed"
            and keys
            and not by
            and f"{task}:{name}:{direction}:{generation}" not in keys
        ):
            yield f"done under another key: {name} ({direction}) of {reference}"


def _reference(task: str) -> str:
    return Task.objects.filter(id=task).values_list("reference", flat=True).first() or task


def _histories(*, calm: bool) -> Iterator[str]:
    for (reference,) in sql.run(TWICE, {}):
        yield f"a task was made again after its removal: {reference}"
    for reference, name, attempt in sql.run(STALE, {}):
        yield f"undone by a request about an earlier attempt ({attempt}): {name} of {reference}"
    if calm:
        refused = Event.objects.filter(kind=EventKind.REPLY_REFUSED)
        for reference, reason in refused.values_list("task__reference", "reason"):
            yield f"a reply was refused without any fault: {reference}: {reason}"


def _audit() -> Iterator[str]:
    """Run every check of the audit, as one prepared statement."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('pg_temp.audit_task') IS NULL")
        if cursor.fetchone() == (True,):
            snapshot.prepare()
            cursor.execute(_preparing())
    with TemporaryFile("w+", newline="", encoding="utf-8") as file:
        for name, agent in sorted(registry.agents.items()):
            snapshot.write(name, agent("audit").ledger() or (), file)
        with transaction.atomic():
            with connection.cursor() as cursor:
                file.seek(0)
                cursor.copy_expert("COPY audit_ledger FROM STDIN WITH (FORMAT csv)", file)
            # not `snapshot.fill`: its ANALYZE, of no use for a few rows, has all checks planned anew
            now = clock.database_now()
            for statement in LOADS:
                sql.run(statement, {**asdict(snapshot.Slice()), "cut": now})
            rows = sql.run("EXECUTE interleave_audit", {})
            transaction.set_rollback(True)
    for number, reference, problem in rows:
        check = runner.CHECKS[number]
        yield f"audit {check.invariant}: {reference}: {problem}"


def _preparing() -> str:
    """Return the statement that prepares all checks as one."""
    parts = []
    values = {**runner.parameters(None, supervised=False), **asdict(snapshot.Slice())}
    with connection.cursor() as cursor:
        for number, check in enumerate(runner.CHECKS):
            if check.scope in Scope:
                text = cursor.mogrify(check.query, values).decode()
                parts.append(f"SELECT {number}, x.* FROM ({text}) AS x (reference, problem)")
    return "PREPARE interleave_audit AS " + " UNION ALL ".join(parts)
