"""Statements of the hot path: each connection plans them once, and always by an index.

Postgres takes as long to plan most statements of a turn as to execute them. Plans are made for any
values, and kept, so they must not depend on what a table contained at that moment: within `by_index` only
plans that walk along an index are left to choose from. These are right at any size.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from . import sql

# For a transaction, sent with its first statement.
BY_INDEX = "".join(
    [
        "SET LOCAL plan_cache_mode = force_generic_plan;",
        *(
            f"SET LOCAL enable_{way} = off;"
            for way in ("seqscan", "bitmapscan", "sort", "hashjoin", "mergejoin")
        ),
    ]
)

_prepared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # names, by connection


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
    known = _prepared.setdefault(here.connection, set())
    wanted = statement(text)
    if wanted.name not in known:
        # the first of a connection finds none that was left by an error
        before += wanted.prepare if known else f"DEALLOCATE ALL;{wanted.prepare}"
        known.add(wanted.name)
    values = {
        name: sql.as_array(value) if isinstance(value, list) else value
        for name in wanted.parameters
        for value in (parameters[name],)
    }
    try:
        return _execute(here, before + wanted.execute, values)
    except Error as error:
        if sql.is_unprepared(error):
            known.clear()
        raise


def _execute(
    here: BaseDatabaseWrapper, text: str, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Execute a statement by the driver's own cursor: Django's takes as long as the driver itself.

    Where each statement is looked at, as in tests and with DEBUG, it is Django's.
    """
    if here.execute_wrappers or here.queries_logged:
        return sql.run(text, values)
    here.validate_no_broken_transaction()
    with here.wrap_database_errors, here.create_cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchall() if cursor.description else []
