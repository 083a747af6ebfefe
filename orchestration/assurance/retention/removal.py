"""Remove tasks that ended long ago, with all that belongs to them.

What remains is a row with hashes of reference and content (`RemovedTask`), and the counts of incidents
and operations.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from ... import conf, registry
from ...cluster.duty import Duty
from ...database import batches, clock, sql
from ...models import RetentionPolicy
from ...models.retention import content_hash, removal_key
from . import belongings
from .belongings import FREE, STEPS

# The next tasks by their end, of any workflow: read along task_by_end, so that a look costs the same
# however many there are. What was looked at is not read again before the next day.
NEXT = """
SELECT id, ended_at, workflow = %(workflow)s AND parent_id IS NULL FROM orchestration_task
WHERE ended_at IS NOT NULL AND ended_at < %(before)s
    AND ended_at >= coalesce(%(since)s::timestamptz, '-infinity')
ORDER BY ended_at LIMIT %(look)s
"""
# An undo may have begun meanwhile: what is locked is compared again.
LOCKED = f"""
SELECT t.id::text, t.workflow, t.reference FROM orchestration_task t
WHERE t.id = ANY(%(ids)s::uuid[]) AND t.ended_at < %(before)s
    AND (%(workflow)s IS NULL OR t.workflow = %(workflow)s AND t.parent_id IS NULL) AND {FREE}
ORDER BY t.id FOR UPDATE OF t SKIP LOCKED
"""  # noqa: S608 - put together from constants
# The children of tasks, theirs, and so on: a child is kept as long as its parent, and goes with it.
CHILDREN = """
WITH RECURSIVE family AS (
    SELECT id AS first, id FROM unnest(%(ids)s::uuid[]) AS t (id)
    UNION ALL
    SELECT f.first, c.id FROM family f JOIN orchestration_step s ON s.task_id = f.id
    JOIN orchestration_task c ON c.parent_id = s.id)
SELECT first::text, id::text FROM family WHERE id <> first
"""
REMEMBERED = f"""
INSERT INTO orchestration_removedtask (key, content, removed_at)
SELECT {removal_key("workflow", "reference")}, coalesce(posted, {content_hash("data")}), clock_timestamp()
FROM orchestration_task WHERE id = ANY(%(tasks)s::uuid[])
ON CONFLICT (key) DO UPDATE SET content = excluded.content, removed_at = excluded.removed_at
"""  # noqa: S608 - put together from constants
# Locked in the order of their ids, as by those who add up their counts. `sign` is -1 when tasks come back.
OF_INCIDENTS = """
WITH gone AS (
    SELECT incident_id AS id, count(*) AS tasks, sum(failures) AS failures
    FROM orchestration_incidenthit WHERE step_id = ANY(%(steps)s::bigint[]) GROUP BY incident_id
), locked AS (
    SELECT id FROM orchestration_incident WHERE id IN (SELECT id FROM gone)
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE orchestration_incident i SET removed_tasks = i.removed_tasks + %(sign)s * gone.tasks,
    removed_failures = i.removed_failures + %(sign)s * gone.failures
FROM gone JOIN locked USING (id) WHERE i.id = gone.id
"""
OF_OPERATIONS = """
WITH gone AS (
    SELECT operation_id AS id, count(*) AS items
    FROM orchestration_operationitem WHERE task_id = ANY(%(tasks)s::uuid[]) GROUP BY operation_id
), locked AS (
    SELECT id FROM orchestration_operation WHERE id IN (SELECT id FROM gone)
    ORDER BY id FOR NO KEY UPDATE
)
UPDATE orchestration_operation o SET removed_items = o.removed_items + %(sign)s * gone.items
FROM gone JOIN locked USING (id) WHERE o.id = gone.id
"""


@dataclass(frozen=True, kw_only=True)
class Due:
    """The next tasks of a workflow that may be removed, and where the look ended."""

    ids: Sequence[UUID]
    looked_until: datetime | None
    more: bool


def remove_due(seconds: float) -> int:
    """Remove old tasks of all workflows, in small batches by turns; return how many.

    No batch begins once the time is over. A workflow whose batch fails does not keep the others waiting.
    """
    until = time.monotonic() + seconds
    now = clock.database_now()
    policies = list(RetentionPolicy.objects.filter(keep_days__isnull=False))
    stored = [_known(policy) for policy in policies]
    at_work, failed = policies, dict[RetentionPolicy, Exception]()
    total = 0

    def remove_batch(part: Sequence[RetentionPolicy]) -> int:
        nonlocal total
        total += sum(_remove_batch(policy, now) for policy in part)
        return len(part)

    while at_work:
        batches.bisect(at_work, remove_batch, failed.__setitem__, apart=True, patience=len(at_work))
        at_work = [policy for policy in at_work if policy.more and policy not in failed]
        if time.monotonic() >= until:
            break
    _note(policies, stored)
    if failed:
        raise ExceptionGroup("old tasks cannot be removed", list(failed.values()))
    return total


def _remove_batch(policy: RetentionPolicy, now: datetime) -> int:
    _begin_anew(policy, now)
    before = now - timedelta(days=policy.keep_days or 0.0)
    due = find(policy.workflow, before, conf.REMOVAL_BATCH_SIZE, since=policy.looked_until)
    count = remove(policy.workflow, due.ids, before) if due.ids else 0
    policy.looked_until, policy.more = due.looked_until, due.more
    return count


def _begin_anew(policy: RetentionPolicy, now: datetime) -> None:
    """Once a day, begin with the oldest: tasks that were kept for a reason may be free by now."""
    if policy.looked_anew and abs(now - policy.looked_anew) < timedelta(days=1):
        return
    policy.looked_anew, policy.looked_until = now, None


def _known(policy: RetentionPolicy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in ("looked_until", "looked_anew", "more")}


def _note(policies: Iterable[RetentionPolicy], stored: Iterable[dict[str, Any]]) -> None:
    """Store how far was looked, without a version in a policy's history.

    Not with each batch, whose commit would wait for the disk: a look that begins too early costs little.
    """
    for policy, before in zip(policies, stored, strict=True):
        if _known(policy) != before:
            RetentionPolicy.objects.filter(workflow=policy.workflow).update(**_known(policy))


def find(workflow: str, before: datetime, limit: int, *, since: datetime | None = None) -> Due:
    """Return the next tasks of a workflow that ended before a time; look at few tasks of others."""
    look = max(conf.REMOVAL_LOOK, limit)
    rows = sql.run(
        NEXT,
        {"workflow": workflow, "before": before, "since": since, "look": look},
    )
    ids: list[UUID] = []
    until = since
    for number, (task, ended_at, removable) in enumerate(rows, 1):
        until = ended_at
        if removable:
            ids.append(task)
            if len(ids) == limit:
                return Due(ids=ids, looked_until=until, more=number < len(rows))
    more = len(rows) == look
    if more and not ids and rows[0][1] == until:  # all of one moment: pass it
        until += timedelta(microseconds=1)
    return Due(ids=ids, looked_until=until, more=more)


@transaction.atomic
def remove(workflow: str, ids: Sequence[UUID], before: datetime) -> int:
    """Remove those of the tasks that are needed no more and not locked; return how many.

    The commit does not wait for the disk: what a crash brings back is removed again.
    """
    sql.run("SET LOCAL synchronous_commit = off", {})
    tasks = lock(workflow, ids, before)
    erase(tasks)
    return len(tasks)


def lock(workflow: str, ids: Sequence[UUID], before: datetime) -> dict[str, tuple[str, str]]:
    """Lock those tasks that may be removed, with their children; return workflows and references by ids."""
    tasks = _lock([str(id_) for id_ in ids], before, workflow)
    families: dict[str, list[str]] = {}
    for first, child in sql.run(CHILDREN, {"ids": list(tasks)}):
        families.setdefault(first, []).append(child)
    if not families:
        return tasks
    children = _lock([child for family in families.values() for child in family], before)
    incomplete = {first for first, family in families.items() if not children.keys() >= set(family)}
    gone = {first: name for first, name in tasks.items() if first not in incomplete}
    for first in gone.keys() & families.keys():
        gone |= {child: children[child] for child in families[first]}
    return gone


def _lock(
    ids: Sequence[str], before: datetime, workflow: str | None = None
) -> dict[str, tuple[str, str]]:
    """Lock tasks that may be removed: without a workflow, any; with one, those that are no children."""
    rows = sql.run(LOCKED, {"ids": list(ids), "workflow": workflow, "before": before})
    return {task: (of, reference) for task, of, reference in rows}


def erase(tasks: Mapping[str, tuple[str, str]]) -> None:
    """Remove locked tasks with all that belongs to them; their applications remove their own first."""
    if not tasks:
        return
    references: dict[str, list[str]] = {}
    for workflow, reference in tasks.values():
        references.setdefault(workflow, []).append(reference)
    for workflow, of_workflow in references.items():
        if known := registry.workflows.get(workflow):
            known.remove(of_workflow)
    of_tasks = {"tasks": list(tasks)}
    steps = [step for (step,) in sql.run(STEPS, of_tasks)]
    parameters = {**of_tasks, "steps": steps, "sign": 1}
    for statement in (REMEMBERED, OF_INCIDENTS, OF_OPERATIONS):
        sql.run(statement, parameters)
    for table in belongings.TABLES:
        sql.run(f"DELETE FROM {table.name} WHERE {table.where}", parameters)  # noqa: S608 - constants


REMOVE_TASKS = Duty(
    name="remove old tasks",
    # with ARCHIVE_DIR, `manage.py archive` does
    run=lambda sweep: 0 if settings.ARCHIVE_DIR else remove_due(sweep.budget),
    counted="removed",
    # the last look left some
    due="NOT %(archived)s AND EXISTS (SELECT FROM orchestration_retentionpolicy"
    " WHERE more AND keep_days IS NOT NULL)",
    every=conf.DUTY_INTERVAL_S,
    budget=lambda: conf.REMOVAL_BUDGET_S,
    parameters=lambda: {"archived": bool(settings.ARCHIVE_DIR)},
)
