"""Reads from a replica of the database, where the project's settings have one: for pages that only show.

Nothing decides by what it read there, and nothing is written: that goes to the primary, as does who may
see a page, and whether the engine is well.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.models import Model

from .. import conf

ALIAS = "replica"
APP = "orchestration"
_alias: ContextVar[str] = ContextVar("database", default=DEFAULT_DB_ALIAS)

POSITION = "SELECT pg_current_wal_lsn()::text"
# What it has not replayed yet is at most as old as the last that it has.
BEHIND = """
SELECT CASE WHEN NOT pg_is_in_recovery() OR pg_last_wal_replay_lsn() >= %(position)s::pg_lsn THEN 0
    ELSE greatest(0, extract(epoch FROM clock_timestamp()
        - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))) END::float8
"""


class Away(Exception):
    """The replica does not answer, or did not a moment ago."""


def alias() -> str:
    """Return the database that is read from here."""
    return _alias.get()


class Router:
    """Django's router: sends the reads of the engine's models to `alias()`."""

    def db_for_read(self, model: type[Model], **_: Any) -> str:
        """Return the database to read from."""
        return alias() if model._meta.app_label == APP else DEFAULT_DB_ALIAS  # noqa: SLF001

    def db_for_write(self, _model: type[Model], **_: Any) -> str:
        """Return the database to write to."""
        return DEFAULT_DB_ALIAS

    def allow_relation(self, *_: Model, **__: Any) -> bool:
        """Allow all: both databases have the same rows."""
        return True

    def allow_migrate(self, db: str, _app: str, **_: Any) -> bool:
        """Migrate the primary alone."""
        return db != ALIAS


class _Rest:
    """Until when, by the steady clock, the replica is left in peace."""

    until = 0.0


_rest = _Rest()


@contextmanager
def reading() -> Iterator[float]:
    """Read from the replica in this context; yield by how many seconds it is behind. Raises `Away`."""
    if ALIAS not in connections or time.monotonic() < _rest.until:
        raise Away
    try:
        behind = _behind()
    except Error as error:
        _rest.until = time.monotonic() + conf.REPLICA_BACKOFF_S
        connections[ALIAS].close()
        raise Away(str(error)) from error
    token = _alias.set(ALIAS)
    try:
        yield behind
    finally:
        _alias.reset(token)


@contextmanager
def primary() -> Iterator[None]:
    """Read from the primary in this context, as everywhere else."""
    token = _alias.set(DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        _alias.reset(token)


def _behind() -> float:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(POSITION)
        (position,) = cursor.fetchone() or ("0/0",)
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(BEHIND, {"position": position})
        (behind,) = cursor.fetchone() or (0.0,)
    return float(behind)
