"""Load tasks, slice by slice, and the services' ledgers into temporary tables for the checks.

The tables are made before the snapshots, as a read-only transaction cannot make tables. The ledgers are
read before them, into a file, so that no transaction is open during a call. So a service may have done more
by the time of a snapshot than its ledger shows. Checks for missing entries compare only *quiet* tasks,
which have not changed since before the ledgers were read.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import IO
from uuid import UUID

from django.db import connection, transaction

from ... import registry
from ...agents.service_ledger import LedgerEntry
from ...database import clock, session, sql
from . import tables

SLICE = 20_000  # tasks of one snapshot, which takes a second or two
FIRST, LAST = str(UUID(int=0)), str(UUID(int=2**128 - 1))
LAST_STEP = 2**63 - 1


class Unreadable(Exception):
    """A service's ledger could not be read; the text names the agent and the reason."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A range of tasks by id, and one of steps: both without the first, with the last."""

    first: str = FIRST
    last: str = LAST
    first_step: int = 0
    last_step: int = LAST_STEP


@contextmanager
def with_tables(file: IO[str]) -> Iterator[None]:
    """Keep the tables for the time of a run, with the ledgers in a file that `read_ledgers` has filled.

    Behind a pooler each transaction may have another session, so there the run is one transaction.
    """
    if session.is_pooled(connection):
        with transaction.atomic():
            _set("REPEATABLE READ")
            prepare()
            store(file)
            yield
            transaction.set_rollback(True)
    else:
        prepare()
        store(file)
        yield
        sql.run(tables.DROP, {})  # a long-lived connection should not keep them


def prepare() -> datetime:
    """Create the tables for this session; return the database's time."""
    sql.run(tables.MAKE, {})
    return clock.database_now()


def find_changed(since: datetime, cut: datetime) -> None:
    """Note which tasks changed since a time, are under way, or were due by `cut`."""
    sql.run(tables.CHANGED, {"since": since, "cut": cut})
    sql.run("ANALYZE audit_changed", {})


def slices(*, changed: bool) -> Iterator[Slice]:
    """Yield ranges that together hold all ids; what comes meanwhile belongs to the last."""
    table = "audit_changed" if changed else "orchestration_task"
    first, first_step = FIRST, 0
    while True:
        parameters = {"first": first, "size": SLICE - 1}
        rows = sql.run(tables.END.format(table=table), parameters)
        if not rows:
            yield Slice(first=first, first_step=first_step)
            return
        ((last,),) = rows
        last_step = _reached(last, first_step)
        yield Slice(first=first, last=last, first_step=first_step, last_step=last_step)
        first, first_step = last, last_step


def _reached(last: str, first: int) -> int:
    """Return the id of a step of the task that ends a range: ids of steps rise with those of tasks."""
    rows = sql.run(
        "SELECT min(id) FROM orchestration_step WHERE task_id = %(last)s", {"last": last}
    )
    return max(first, rows[0][0] or 0)


@contextmanager
def reading() -> Iterator[None]:
    """Read the database at one moment, and change nothing; go on in a run that is one transaction."""
    if connection.in_atomic_block:
        yield
        sql.run(tables.AFTER_SLICE, {})
    else:
        with transaction.atomic():
            _set("REPEATABLE READ, READ ONLY")
            yield


def _set(mode: str) -> None:
    """Begin a transaction that reads for long."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {mode}")
        cursor.execute("SET LOCAL statement_timeout = '10min'; SET LOCAL work_mem = '64MB'")


def fill(cut: datetime, part: Slice | None = None, *, changed: bool = False) -> int:
    """Load a slice, or all tasks, in a transaction of the caller; return how many tasks it has.

    Tasks that have not changed since `cut` are quiet.
    """
    which = tables.SLICE_OF_CHANGED if changed else tables.SLICE
    sql.run(which, asdict(part or Slice()))
    sql.run("ANALYZE audit_slice", {})
    sql.run(tables.BY_KEY, {})
    for statement in (tables.STEPS, tables.ATTEMPTS, tables.EVENTS):
        sql.run(statement, {})
    sql.run(tables.AS_USUAL, {})
    sql.run(tables.TASKS, {"cut": cut})
    sql.run(tables.EFFECTS, {})
    sql.run(tables.ANALYZE, {})
    return int(sql.run("SELECT count(*) FROM audit_task", {})[0][0])


def empty() -> None:
    """Empty the tables of the last slice: a read-only transaction cannot."""
    sql.run(tables.EMPTY, {})


def store(file: IO[str]) -> None:
    """Load the ledgers in a file that `read_ledgers` has filled."""
    file.seek(0)
    with connection.cursor() as cursor:
        cursor.copy_expert("COPY audit_ledger FROM STDIN WITH (FORMAT csv)", file)
    sql.run(tables.INDEX_LEDGER, {})


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
        *(None if value is None else json.dumps(value) for value in (entry.detail, entry.result)),
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
