"""Statements of the hot path: each connection plans them once, and always by an index.

Postgres takes as long to plan most statements of a turn as to execute them. Plans are made for any
values, and kept, so they must not depend on what a table contained at that moment: only plans that walk
along an index are left to choose from. These are right at any size, for statements written for them;
all others of the same transaction are planned as usual.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg2.extensions import TRANSACTION_STATUS_INTRANS

from . import sql

WAYS = ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin")
# For a transaction, sent with its first prepared statement: 8 µs.
BY_INDEX = "SET LOCAL plan_cache_mode = force_generic_plan;" + "".join(
    f"SET LOCAL enable_{way} = off;" for way in WAYS
)
AS_USUAL = "".join(f"SET LOCAL enable_{way} = on;" for way in WAYS)


@dataclass(eq=False, kw_only=True)
class Session:
    """What a connection has: prepared statements, by name, and `BY_INDEX` in its transaction.

    `by_index` is None after a rollback to a savepoint: Postgres has the settings of that moment.
    """

    prepared: set[str] = field(default_factory=set)
    by_index: bool | None = False


_sessions: WeakKeyDictionary[Any, Session] = WeakKeyDictionary()  # by the driver's connection


class Statement:
    """A statement with named parameters, as it is prepared: `$1` for `%(name)s`."""

    def __init__(self, text: str) -> None:
        names: dict[str, None] = dict.fromkeys(re.findall(r"%\((\w+)\)s", text))
        self.parameters = tuple(names)
        self.name = _name(text)
        places = {name: f"${number}" for number, name in enumerate(names, 1)}
        body = re.sub(r"%\((\w+)\)s", lambda found: places[found[1]], text)
        self.prepare = f"PREPARE {self.name} AS {body};"
        values = ", ".join(f"%({name})s" for name in names)
        self.execute = f"EXECUTE {self.name}" + (f" ({values})" if names else "")


statement = cache(Statement)
POINT = re.compile(r"(RELEASE )?SAVEPOINT")
EXECUTED = re.compile(r"EXECUTE sas_\w+( \(|$)")


def _name(text: str) -> str:
    """Return the name of a prepared statement: what it does with which table, as operators see it."""
    verb, table = re.findall(r"(INSERT INTO|UPDATE|FROM) \"?orchestration_(\w+)", text)[-1]
    verb = {"FROM": "select", "INSERT INTO": "insert"}.get(verb, "update")
    return f"sas_{verb}_{table}_{crc32(text.encode()):08x}"


def run(text: str, parameters: Mapping[str, Any], before: str = "") -> list[tuple[Any, ...]]:
    """Execute a statement as `sql.run` does, planned once for each connection; return its rows.

    `before` are settings, sent with it. Behind a pooler that gives each transaction another connection
    (Django's setting for that: DISABLE_SERVER_SIDE_CURSORS) nothing is prepared.
    """
    here = connections[DEFAULT_DB_ALIAS]
    here.ensure_connection()
    if here.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        return _execute(here, before + text, parameters)
    if _as_usual not in here.execute_wrappers:
        here.execute_wrappers.insert(0, _as_usual)
    session = _sessions.setdefault(here.connection, Session())
    wanted = statement(text)
    if wanted.name not in session.prepared:
        # the first of a connection finds none that was left by an error
        before += wanted.prepare if session.prepared else f"DEALLOCATE ALL;{wanted.prepare}"
        session.prepared.add(wanted.name)
    if not (session.by_index and _in_transaction(here)):
        before = BY_INDEX + before
    session.by_index = True
    values = {
        name: sql.as_array(value) if isinstance(value, list) else value
        for name in wanted.parameters
        for value in (parameters[name],)
    }
    try:
        return _execute(here, before + wanted.execute, values)
    except Error as error:
        if sql.is_unprepared(error):
            session.prepared.clear()
        raise


def _in_transaction(here: BaseDatabaseWrapper) -> bool:
    return bool(here.connection.get_transaction_status() == TRANSACTION_STATUS_INTRANS)


def _execute(
    here: BaseDatabaseWrapper, text: str, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Execute a statement by the driver's own cursor: Django's takes as long as the driver itself.

    Where each statement is looked at, as in tests and with DEBUG, it is Django's.
    """
    if here.queries_logged or any(one is not _as_usual for one in here.execute_wrappers):
        return sql.run(text, values)
    here.validate_no_broken_transaction()
    with here.wrap_database_errors, here.create_cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchall() if cursor.description else []


def _as_usual(
    execute: Callable[..., Any], text: str, parameters: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Plan a statement of Django's as usual, though prepared ones went before it in its transaction.

    Without its sort, for example, it would read a whole table in the order of its primary key.
    """
    here = context["connection"]
    session = _sessions.get(here.connection)
    if session and not EXECUTED.search(text):
        if text.startswith("ROLLBACK TO"):
            session.by_index = None
        elif session.by_index is not False and _in_transaction(here) and not POINT.match(text):
            with here.create_cursor() as cursor:
                cursor.execute(AS_USUAL)
            session.by_index = False
    return execute(text, parameters, many, context)
