"""Statements of the hot path: each connection plans them once, and always by an index.

Postgres takes as long to plan most statements of a turn as to execute them. Plans are made for any
values, and kept, so they must not depend on what a table contained at that moment: only plans that walk
along an index are left to choose from. These are right at any size, for statements written for them;
all others of the same transaction are planned as usual.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary
from zlib import crc32

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg2.extensions import TRANSACTION_STATUS_INTRANS

from . import sql
from .session import is_pooled

WAYS = ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin")
# For a transaction, sent with its first prepared statement: 8 µs.
BY_INDEX = "SET LOCAL plan_cache_mode = force_generic_plan;" + "".join(
    f"SET LOCAL enable_{way} = off;" for way in WAYS
)
AS_USUAL = "".join(f"SET LOCAL enable_{way} = on;" for way in WAYS)

NAMED = re.compile(r"%\((\w+)\)s")
POINT = re.compile(r"(RELEASE )?SAVEPOINT")
EXECUTED = re.compile(r"EXECUTE sas_\w+( \(|$)")


@dataclass(eq=False, kw_only=True)
class Session:
    """What a connection has: prepared statements, by name, and `BY_INDEX` in its transaction.

    `by_index` is None after a rollback to a savepoint: Postgres has the settings of that moment.
    """

    prepared: set[str] = field(default_factory=set)
    by_index: bool | None = False


_sessions: WeakKeyDictionary[Any, Session] = WeakKeyDictionary()  # by the driver's connection


class Part(NamedTuple):
    """A statement with named parameters, and their values."""

    text: str
    values: Mapping[str, Any]


class Statement:
    """A statement as it is prepared: `$1` for `%(name)s`."""

    def __init__(self, text: str) -> None:
        self.parameters = tuple(dict.fromkeys(NAMED.findall(text)))
        self.name = _name(text)
        places = {name: f"${number}" for number, name in enumerate(self.parameters, 1)}
        self.prepare = f"PREPARE {self.name} AS {NAMED.sub(lambda match: places[match[1]], text)};"


statement = cache(Statement)


def _name(text: str) -> str:
    """Return the name of a prepared statement: what it does with which table, as operators see it."""
    verb, table = re.findall(r"(INSERT INTO|UPDATE|FROM) \"?orchestration_(\w+)", text)[-1]
    verb = {"FROM": "select", "INSERT INTO": "insert"}.get(verb, "update")
    return f"sas_{verb}_{table}_{crc32(text.encode()):08x}"


def run(text: str, parameters: Mapping[str, Any], before: str = "") -> list[tuple[Any, ...]]:
    """Execute a statement as `sql.run` does, planned once for each connection; return its rows."""
    return run_all([Part(text, parameters)], before)


def run_all(parts: Sequence[Part], before: str = "") -> list[tuple[Any, ...]]:
    """Execute statements one after the other, sent in one message; return the rows of the last.

    `before` are settings, sent with them. Behind a pooler that gives each transaction another connection
    (Django's setting for that: DISABLE_SERVER_SIDE_CURSORS) nothing is prepared.
    """
    here = connections[DEFAULT_DB_ALIAS]
    here.close_if_health_check_failed()  # else Django's cursor replaced it, after its session was looked up
    here.ensure_connection()
    values = {
        f"{name}_{number}": sql.as_array(value) if isinstance(value, list) else value
        for number, part in enumerate(parts)
        for name in statement(part.text).parameters
        for value in (part.values[name],)
    }
    if is_pooled(here):
        return _execute(here, before + _unprepared(tuple(part.text for part in parts)), values)
    if _as_usual not in here.execute_wrappers:
        here.execute_wrappers.insert(0, _as_usual)
    session = _sessions.setdefault(here.connection, Session())
    for planned in (statement(part.text) for part in parts):
        if planned.name not in session.prepared:
            # the first of a connection finds none that was left by an error
            before += planned.prepare if session.prepared else f"DEALLOCATE ALL;{planned.prepare}"
            session.prepared.add(planned.name)
    if not (session.by_index and _in_transaction(here)):
        before = BY_INDEX + before
    session.by_index = True
    try:
        return _execute(here, before + _executing(tuple(part.text for part in parts)), values)
    except Error as error:
        if sql.is_unprepared(error):
            session.prepared.clear()
        raise


@cache
def _executing(texts: Sequence[str]) -> str:
    """Return what executes prepared statements, each with parameters of its own."""
    return ";".join(
        f"EXECUTE {planned.name}" + (f" ({', '.join(parameters)})" if parameters else "")
        for number, planned in enumerate(map(statement, texts))
        for parameters in [[f"%({name}_{number})s" for name in planned.parameters]]
    )


@cache
def _unprepared(texts: Sequence[str]) -> str:
    """Return the statements as they are, each with parameters of its own."""
    return ";\n".join(NAMED.sub(rf"%(\1_{number})s", text) for number, text in enumerate(texts))


def _in_transaction(here: BaseDatabaseWrapper) -> bool:
    return bool(here.connection.get_transaction_status() == TRANSACTION_STATUS_INTRANS)


def _execute(
    here: BaseDatabaseWrapper, text: str, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Execute a statement by the driver's own cursor: Django's takes as long as the driver itself.

    Where each statement is looked at, as in tests and with DEBUG, it is Django's.
    """
    if here.queries_logged or any(wrapper is not _as_usual for wrapper in here.execute_wrappers):
        return sql.run(text, values)
    here.validate_no_broken_transaction()
    with here.wrap_database_errors, here.create_cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchall() if cursor.description else []


def _as_usual(
    execute: Callable[..., Any], text: Any, parameters: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Plan a statement of Django's as usual, though prepared ones went before it in its transaction.

    Without its sort, for example, it would read a whole table in the order of its primary key.
    """
    here = context["connection"]
    session = _sessions.get(here.connection)
    words = text if isinstance(text, str) else ""  # or the driver's composed statement
    if session and not EXECUTED.search(words):
        if words.startswith("ROLLBACK TO"):
            session.by_index = None
        elif session.by_index is not False:
            if not _in_transaction(here):
                session.by_index = False  # those of another transaction have ended with it
            elif not POINT.match(words):
                with here.create_cursor() as cursor:
                    cursor.execute(AS_USUAL)
                session.by_index = False
    return execute(text, parameters, many, context)
