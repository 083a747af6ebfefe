"""Write old tasks to files, then remove them; and put them back.

The tasks of a file are locked, written, read back from disk, named in the manifest and removed in one
transaction. So a process that dies at any time leaves each task in the database, in a file that the
manifest names, or in both. What is in both is known by the next run.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from ...cluster import crash_points
from ...database import clock, sql
from ...models import RetentionPolicy
from ...models.retention import removal_key
from . import folder, lines, removal
from .belongings import STEPS, TABLES
from .folder import Damaged, Entry, Folder

FILE_SIZE = 2_000  # tasks of a file, and of a transaction
PRESENT = "SELECT id::text FROM orchestration_task WHERE id = ANY(%(tasks)s::uuid[])"
TAKEN = """
SELECT t.reference FROM unnest(%(ids)s::uuid[], %(workflows)s::text[], %(references)s::text[])
    AS f (id, workflow, reference)
JOIN orchestration_task t ON t.workflow = f.workflow AND t.reference = f.reference AND t.id <> f.id
LIMIT 1
"""
FORGET = f"""
DELETE FROM orchestration_removedtask r
USING unnest(%(workflows)s::text[], %(references)s::text[]) AS f (workflow, reference)
WHERE r.key = {removal_key("f.workflow", "f.reference")}
"""  # noqa: S608 - put together from constants


NAMES = ("id", "workflow", "reference")  # of a task


class Exists(Exception):
    """What a file has is in the database already, and differs."""


def archive(
    path: Path,
    before: datetime | None,
    workflows: Sequence[str],
    report: Callable[[str], None],
    *,
    size: int = FILE_SIZE,
) -> int:
    """Write and remove the tasks of workflows that ended before a time; return how many.

    Without a time, those that their retention policies no longer keep.
    """
    total = 0
    with folder.opened(path, make=True) as files:
        settle(files)
        for policy in RetentionPolicy.objects.filter(workflow__in=workflows):
            until = before or _no_longer_kept(policy)
            since = None
            while until is not None:
                due = removal.find(policy.workflow, until, size, since=since)
                total += _move(files, policy.workflow, due.ids, until, report) if due.ids else 0
                since = due.looked_until
                if not due.more:
                    break
    return total


def _no_longer_kept(policy: RetentionPolicy) -> datetime | None:
    if policy.keep_days is None:
        return None
    return clock.database_now() - timedelta(days=policy.keep_days)


def _move(
    files: Folder,
    workflow: str,
    ids: Sequence[Any],
    before: datetime,
    report: Callable[[str], None],
) -> int:
    with transaction.atomic():
        tasks = removal.lock(workflow, ids, before)
        if not tasks:
            return 0
        now = lines.shape()
        written = [line for _, line in lines.write(list(tasks), now)]
        entry = _entry(workflow, written, now)
        files.write(entry, written)
        crash_points.reached("archive.before_removal")
        removal.erase(tasks)
        crash_points.reached("archive.before_commit")
    crash_points.reached("archive.after_commit")
    entry.removed = True
    files.note()
    report(f"{entry.file}: {entry.tasks:,} tasks of {workflow}, ended until {entry.last_end}")
    return len(tasks)


def _entry(workflow: str, written: Sequence[str], now: lines.Shape) -> Entry:
    tasks = [json.loads(line) for line in written]
    ends = sorted(task["orchestration_task"][0]["ended_at"] for task in tasks)
    return Entry(
        file="",
        workflow=workflow,
        tasks=len(written),
        rows={table.name: sum(len(task[table.name]) for task in tasks) for table in TABLES},
        first_end=ends[0],
        last_end=ends[-1],
        schema=_schema(),
        columns={name: list(columns) for name, columns in now.columns.items()},
    )


def _schema() -> str:
    applied = MigrationRecorder(connection).applied_migrations()
    return max(name for app, name in applied if app == "orchestration")


def settle(files: Folder) -> None:
    """Find out about files whose process died: their tasks were removed, or the file is not needed."""
    for entry in [entry for entry in files.entries if not entry.removed]:
        ids = [task["id"] for task in _tasks(entry, files.read(entry))]
        present = len(sql.run(PRESENT, {"tasks": ids}))
        if present == len(ids):
            files.drop(entry)
        elif present:
            raise Exists(f"{entry.file}: {present} of its {len(ids)} tasks are in the database")
        else:
            entry.removed = True
            files.note()


def restore(path: Path, report: Callable[[str], None]) -> int:
    """Put back all tasks of an archive, a file in each transaction; return how many.

    Every file is compared with its checksum, and read, first. A file whose tasks are all there, unchanged, is
    passed over. Raises `Damaged` and `Exists`.
    """
    with folder.opened(path) as files:
        now = lines.shape()
        for entry in files.entries:
            for name, columns in entry.columns.items():
                if gone := set(columns) - set(now.columns.get(name, ())):
                    raise Damaged(f"{entry.file}: {name} no longer has {', '.join(sorted(gone))}")
            _tasks(entry, files.read(entry))
        total = 0
        for entry in files.entries:
            count = _put_back(files, entry, now)
            total += count
            report(f"{entry.file}: {count:,} tasks of {entry.workflow}")
    return total


@transaction.atomic
def _put_back(files: Folder, entry: Entry, now: lines.Shape) -> int:
    written = list(files.read(entry))
    tasks = _tasks(entry, written)
    ids = [task["id"] for task in tasks]
    names = {
        "ids": ids,
        "workflows": [task["workflow"] for task in tasks],
        "references": [task["reference"] for task in tasks],
    }
    if present := sql.run(PRESENT, {"tasks": ids}):
        if len(present) == len(ids) and _same(ids, written, entry, now):
            return 0
        raise Exists(f"{entry.file}: {len(present)} of its tasks are in the database, and differ")
    if taken := sql.run(TAKEN, names):
        raise Exists(f"{entry.file}: the reference {taken[0][0]} is taken by another task")
    lines.read(written, entry.columns, now)
    steps = [step for (step,) in sql.run(STEPS, {"tasks": ids})]
    for statement in (removal.OF_INCIDENTS, removal.OF_OPERATIONS):
        sql.run(statement, {"tasks": ids, "steps": steps, "sign": -1})
    sql.run(FORGET, names)
    lines.advance_sequences()
    if not _same(ids, written, entry, now):
        raise Damaged(f"{entry.file}: the rows that were put back are not those that were written")
    return len(ids)


def _tasks(entry: Entry, written: Iterable[str]) -> list[dict[str, str]]:
    """Return the names of the tasks of a file's lines; raise `Damaged` for a line without one."""
    tasks = []
    for number, line in enumerate(written, 1):
        try:
            task = json.loads(line)["orchestration_task"][0]
            tasks.append({name: str(task[name]) for name in NAMES})
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            why = f"{type(error).__name__}: {error}"
            raise Damaged(f"{entry.file}: line {number} is not a task ({why})") from error
    return tasks


def _same(ids: Sequence[str], written: Sequence[str], entry: Entry, now: lines.Shape) -> bool:
    """Whether the database has the tasks as they were written; columns that came since do not count."""
    then = lines.Shape(
        entry.columns,
        {
            name: [column for column in now.texts[name] if column in columns]
            for name, columns in entry.columns.items()
        },
    )
    added = {name: set(now.columns[name]) - set(columns) for name, columns in entry.columns.items()}
    present = [line for _, line in lines.write(ids, then)]
    if not any(added.values()):
        return present == list(written)
    before = [lines.as_now(json.loads(line), entry.columns) for line in written]
    return [_without(line, added) for line in present] == before


def _without(line: str, added: dict[str, set[str]]) -> dict[str, list[dict[str, Any]]]:
    return {
        table: [
            {key: value for key, value in row.items() if key not in added[table]} for row in rows
        ]
        for table, rows in json.loads(line).items()
    }
