"""A task with all its rows as one line of JSON, exactly; and back.

Columns of type jsonb are kept as texts: so a JSON null is not taken for an empty column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...database import sql
from .belongings import TABLES

COLUMNS = """
SELECT attrelid::regclass::text, attname::text, atttypid = 'jsonb'::regtype
FROM pg_attribute WHERE attrelid = ANY(%(tables)s::regclass[]) AND attnum > 0 AND NOT attisdropped
ORDER BY attrelid, attnum
"""
PART = """'{table}', (SELECT coalesce(jsonb_agg(
    to_jsonb(r) || jsonb_build_object({texts}) ORDER BY r.id), '[]') FROM {table} r WHERE {where})"""
STEP = "orchestration_step"
# Releases without this column called skipped what was done by hand.
DONE_BY = "done_by"
FORMER_STATE = "CASE r.process_state WHEN 'skipped' THEN 'processed' ELSE r.process_state END"
FORMER_DONE_BY = """CASE r.process_state WHEN 'skipped' THEN coalesce((
    SELECT e.actor
    FROM jsonb_populate_recordset(NULL::orchestration_event, l.line->'orchestration_event') AS e
    WHERE e.step_id = r.id AND e.kind = 'by_hand' ORDER BY e.id DESC LIMIT 1), '?') ELSE '' END"""
SEQUENCE = """
SELECT setval(pg_get_serial_sequence('{0}', 'id'), max(id)) FROM {0}
HAVING max(id) > (SELECT last_value FROM {1})
"""


@dataclass(frozen=True)
class Shape:
    """The columns of each table, and those of type jsonb."""

    columns: Mapping[str, Sequence[str]]
    texts: Mapping[str, Sequence[str]]


def shape() -> Shape:
    """Return the tables' columns as the database has them now."""
    rows = sql.run(COLUMNS, {"tables": [table.name for table in TABLES]})
    names = [table.name for table in TABLES]
    return Shape(
        {name: [column for table, column, _ in rows if table == name] for name in names},
        {
            name: [column for table, column, text in rows if table == name and text]
            for name in names
        },
    )


def write(tasks: Sequence[str], now: Shape) -> list[tuple[str, str]]:
    """Return the ids of tasks, in order, and the line of each."""
    parts = ", ".join(
        PART.format(
            table=table.name,
            texts=", ".join(f"'{name}', r.{name}::text" for name in now.texts[table.name]),
            where=table.of_task,
        )
        for table in TABLES
        if table.name in now.columns
    )
    statement = f"""
        SELECT t.id::text, jsonb_build_object({parts})::text
        FROM orchestration_task t WHERE t.id = ANY(%(tasks)s::uuid[]) ORDER BY t.id
        """  # noqa: S608 - names of tables and columns
    return [(task, line) for task, line in sql.run(statement, {"tasks": list(tasks)})]


def read(lines: Sequence[str], then: Mapping[str, Sequence[str]], now: Shape) -> None:
    """Insert the rows of lines that were written when tables had the columns of `then`.

    A table that came since has none.
    """
    for table in reversed([table for table in TABLES if table.name in then]):
        texts = set(now.texts[table.name])
        columns = then[table.name]
        values = {
            name: f"(r.{name} #>> '{{}}')::jsonb" if name in texts else f"r.{name}"
            for name in columns
        }
        if table.name == STEP and DONE_BY not in columns:
            values |= {"process_state": FORMER_STATE, DONE_BY: FORMER_DONE_BY}
        sql.run(
            f"""
            INSERT INTO {table.name} ({", ".join(values)})
            SELECT {", ".join(values.values())} FROM unnest(%(lines)s::jsonb[]) AS l (line),
                jsonb_populate_recordset(NULL::{table.name}, l.line->'{table.name}') AS r
            """,  # noqa: S608 - names of tables, and of columns that the database has
            {"lines": list(lines)},
        )


def as_now(line: dict[str, Any], then: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the content of a line as `read` has put it into the columns of `then`."""
    if DONE_BY not in then.get(STEP, (DONE_BY,)):
        for row in line[STEP]:
            if row["process_state"] == "skipped":
                row["process_state"] = "processed"
    return line


def advance_sequences() -> None:
    """Let new rows have ids beyond those that were read, in a database that has never given these."""
    for table in TABLES:
        ((sequence,),) = sql.run(
            "SELECT pg_get_serial_sequence(%(table)s, 'id')", {"table": table.name}
        )
        if sequence:
            sql.run(SEQUENCE.format(table.name, sequence), {})
