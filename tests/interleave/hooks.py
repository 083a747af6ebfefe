"""Where actors can be switched: in their connections to Postgres, and before each command to Redis."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from django.db.backends.signals import connection_created
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from orchestration import conf
from orchestration.cluster import leader_election
from orchestration.database import clock, sql
from orchestration.messaging import queues, redis_breaker
from orchestration.models import low_water
from orchestration.testing import fake_clock
from orchestration.testing.run import BUDGETS

from .threads import START, Actor, Stage

SETS = re.compile(r"SET (LOCAL )?[^;]*;|PREPARE .*;(?=EXECUTE)", re.DOTALL)
POINT = re.compile(r"SAVEPOINT|RELEASE|ROLLBACK")
SETTINGS = """
SET deadlock_timeout = '20ms'; SET lock_timeout = 0; SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0; SET jit = off; SET synchronous_commit = off;
SET search_path = {schema}, public, pg_catalog
"""
NO_LIMIT, IMPATIENT = "SET LOCAL lock_timeout = 0;", "SET LOCAL lock_timeout = '1ms';"
BROKEN = "DO $$ BEGIN RAISE EXCEPTION 'the disk is full' USING ERRCODE = '53100'; END $$"


class Session:
    """The hooks of one actor's connection: execute wrapper, commit."""

    def __init__(self, actor: Actor, here: Any) -> None:
        self.actor = actor
        self.here = here
        self._commit = here._commit
        here._commit = self.commit
        here.execute_wrappers.append(self.execute)

    def execute(
        self, execute: Callable[..., Any], text: Any, parameters: Any, many: bool, context: Any
    ) -> Any:
        """Execute a statement at the run's time; before it, the actor may be switched."""
        if not isinstance(text, str) or POINT.match(text):
            return execute(text, parameters, many, context)
        actor = self.actor
        begins = self.here.connection.get_transaction_status() == TRANSACTION_STATUS_IDLE
        if actor.reached(_named(text), fault=begins) == "killed":
            actor.stage.kill(actor)
        return execute(_timed(actor.stage, text), parameters, many, context)

    def commit(self) -> None:
        """Commit, unless a fault strikes before, or the answer is lost after it."""
        actor = self.actor
        if actor.stage.free or self.here.connection.get_transaction_status() == 0:
            return self._commit()
        fault = actor.reached("commit", fault=True)
        if fault == "killed":
            actor.stage.kill(actor)
        if fault == "commit fails":
            with self.here.wrap_database_errors, self.here.connection.cursor() as cursor:
                cursor.execute(BROKEN)
        self._commit()
        if fault == "answer lost":
            actor.stage.kill(actor)
            with self.here.wrap_database_errors, self.here.connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        actor.reached("committed")
        return None


class Watched(redis_breaker.RedisCircuitBreaker):
    """Commands to Redis, before which an actor may be switched."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Run commands to Redis in this context."""
        if actor := self._stage.actor():
            actor.reached("Redis")
        with super().asking():
            yield


def _named(text: str) -> str:
    """Return a statement without the settings before it, for the trace."""
    return " ".join(SETS.sub("", text).split())[:160]


def _timed(stage: Stage, text: str) -> str:
    """Return a statement with the run's time before it."""
    now = datetime.fromtimestamp(stage.now, UTC).isoformat()
    return f"SET sas.now = '{now}';{text}"


@contextmanager
def hooked(stage: Stage) -> Iterator[None]:
    """Have the engine's time be that of the stage, and its actors be switched, in this block."""
    sessions: dict[Any, Session] = {}

    def connected(*, connection: Any, **_: Any) -> None:
        with connection.connection.cursor() as cursor:
            cursor.execute(SETTINGS.format(schema=fake_clock.SCHEMA))
        if actor := stage.actor():
            actor.pid = connection.connection.info.backend_pid
            if connection not in sessions:
                sessions[connection] = Session(actor, connection)

    connection_created.connect(connected)
    with ExitStack() as stack:
        stack.callback(connection_created.disconnect, connected)
        stack.enter_context(patch.object(clock, "steady", lambda: stage.now - START))
        stack.enter_context(patch.object(clock, "_measured", (START, 0.0)))
        stack.enter_context(patch.object(queues, "_breaker", Watched(stage)))
        stack.enter_context(
            patch.object(low_water, "time", SimpleNamespace(monotonic=clock.steady))
        )
        stack.enter_context(patch.object(low_water, "COSTLY", low_water.COSTLY))
        for budget in BUDGETS:
            stack.enter_context(patch.object(conf, budget, float("inf")))
        stack.enter_context(patch.object(sql, "BRIEFLY", NO_LIMIT))
        stack.enter_context(patch.object(leader_election, "BRIEFLY", "SET lock_timeout = 0;"))
        yield
