"""Where runs take place: a database, its rows between two runs, and the stage."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg2
from django.db import connection

from orchestration.cluster.debounce import Pauses
from orchestration.database import sql
from orchestration.housekeeping import agent_rows
from orchestration.messaging import queue_names, queues
from orchestration.models import RetentionPolicy, Worker, low_water
from orchestration.testing import fake_clock

from . import declared, services
from .hooks import hooked
from .threads import Stage

NAMES = (
    "application", "operator", "submission-1", "submission-2", "scheduler-1", "scheduler-2",
    "supervisor-1", "supervisor-2", "housekeeper",
)  # fmt: skip
KEEP = (
    "policy",
    "steppolicy",
    "gate",
    "supervisorpolicy",
    "retentionpolicy",
    "lease",
    "rollupmark",
    "worker",
)
EMPTIED = """
SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^orchestration_[a-z]+$'
    AND NOT relname = ANY(%(keep)s) ORDER BY relname
"""
TEMPORARY = """
SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = pg_my_temp_schema()
"""
VACUUM_EVERY = 100  # runs


@contextmanager
def standing() -> Iterator[Stage]:
    """Give a stage on the connected database, with its own agents and workflows, in this block."""
    fake_clock.install()
    known = ("dbname", "user", "password", "host", "port")
    parameters = connection.get_connection_params()
    admin = psycopg2.connect(**{name: parameters[name] for name in known if name in parameters})
    admin.autocommit = True
    stage = Stage(list(NAMES), admin)
    try:
        with hooked(stage), declared.declared():
            connection.close()  # the next one has the clock of the runs
            declared.ensure()
            agent_rows.ensure()
            RetentionPolicy.objects.update(keep_days=1.0)
            yield stage
    finally:
        stage.end()
        admin.close()
        connection.close()


class Rows:
    """Sets the rows back to what each run begins with."""

    def __init__(self, admin: Any) -> None:
        # a connection of its own: with the role of a replica, one forgets all its plans
        self._admin = admin
        keep = [f"orchestration_{name}" for name in KEEP]
        tables = [name for (name,) in sql.run(EMPTIED, {"keep": keep})]
        gone = ";".join(f"DELETE FROM {table}" for table in tables)
        self._tables = tables
        self._statement = f"""
        BEGIN; SET LOCAL session_replication_role = replica; {gone};
        UPDATE orchestration_lease SET expires_at = 'epoch', holder = '', swept_at = NULL, epoch = 1;
        UPDATE orchestration_retentionpolicy SET looked_until = NULL, looked_anew = NULL, more = false;
        UPDATE orchestration_worker SET seen_at = '2100-01-01';
        DELETE FROM orchestration_gate;
        INSERT INTO orchestration_gate SELECT * FROM interleave_gate;
        COMMIT;
        """
        self._runs = 0
        self._do("CREATE TEMPORARY TABLE interleave_gate AS SELECT * FROM orchestration_gate")
        Worker.objects.all().delete()
        Worker.objects.bulk_create(
            Worker(instance=f"{name}-0", queue=name, host="here", pid=1)
            for name in queue_names.declared()
        )

    def reset(self) -> None:
        """Delete what a run left, in Postgres and Redis, and at the services."""
        self._runs += 1
        if self._runs % VACUUM_EVERY == 0:
            with connection.cursor() as cursor:
                cursor.execute(
                    f"VACUUM {', '.join(self._tables)}, orchestration_gate, orchestration_lease"
                )
                for (table,) in sql.run(TEMPORARY, {}):  # of the audits
                    cursor.execute(f"VACUUM pg_temp.{table}")
        self._do(self._statement)
        redis = queues.connection()
        redis.flushdb()
        # as if each queue's worker had been called: no job of RQ is made
        redis.mset({queues.flag(name): 1 for name in queue_names.declared()})
        Pauses.end_all()
        for marks in (low_water.AGENTS, low_water.PROCESSING):
            marks.__init__(marks.lowest, marks.kind)  # type: ignore[misc]
        services.LEDGER.__init__()  # type: ignore[misc]

    def _do(self, statement: str) -> None:
        with self._admin.cursor() as cursor:
            cursor.execute(statement)


def set_time(stage: Stage) -> None:
    """Have this thread's connection, which no actor has, show the run's time."""
    sql.run(fake_clock.SET, {"now": datetime.fromtimestamp(stage.now, UTC).isoformat()})
