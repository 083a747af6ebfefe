"""Postgres: restarted, cut off, deadlocked, out of connections, or locked by a foreign session."""

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg2  # type: ignore[import-untyped]

from drill import proxy
from drill.proxy import Spoil
from drill.recipes import Running, recipe
from drill.servers import POSTGRES_SOCKET
from drill.stack import Stack
from drill.verdict import ALERTED
from drill.waiting import pause, wait_for

TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sas'"
MANY_LOCKED = 40
DEADLOCKS = "SELECT sum(deadlocks) FROM pg_stat_database"
LIVE = """
SELECT id FROM orchestration_task WHERE reference = ANY(%s)
AND state IN ('pending', 'processing') ORDER BY id DESC LIMIT 40
"""

# The rows that a foreign session may lock: the oldest ones. The pending one is locked by its id: a row that
# has left its state while the statement waits for it is locked, and not returned.
LOCKS = {
    "pending task": "SELECT id FROM orchestration_task WHERE id = (SELECT id FROM orchestration_task"
    " WHERE state = 'pending' ORDER BY id LIMIT 1) FOR UPDATE",
    "task in flight": "SELECT t.id FROM orchestration_task t JOIN orchestration_step s"
    " ON s.task_id = t.id WHERE s.locked_by IS NOT NULL ORDER BY t.id LIMIT 1 FOR UPDATE OF t",
    "200 tasks": "SELECT id FROM orchestration_task WHERE state = 'processing' ORDER BY id LIMIT 200"
    " FOR UPDATE",
    "gate": "SELECT agent FROM orchestration_gate WHERE agent = 'notification' FOR UPDATE",
    "incident": "SELECT id FROM orchestration_incident FOR UPDATE",
    "alert": "SELECT id FROM orchestration_alert FOR UPDATE",
}
NEED_REJECTIONS = ("incident", "alert")
DECLINED = "pm_card_visa_chargeDeclined"
# the other tasks that should end meanwhile
UNFINISHED = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND t.id::text <> ALL(%s) AND s.agent <> ALL(%s)
  AND s.process_state IN ('pending', 'processing')
"""
DEAD_LETTERS = """
SELECT count(*) FROM orchestration_deadletter d JOIN orchestration_step s ON s.id = d.step
JOIN orchestration_task t ON t.id = s.task_id WHERE t.reference = ANY(%s)
"""


@contextmanager
def locked(stack: Stack, lock: str) -> Iterator[list[str]]:
    """Hold one of `LOCKS` in a session of its own; yield the keys of the rows."""
    connection = stack.connect()
    try:
        with connection.cursor() as cursor:
            cursor.execute(LOCKS[lock])
            yield [str(name) for (name,) in cursor.fetchall()]
    finally:
        connection.close()


@recipe
def postgres_locked(run: Running, *, lock: str) -> Iterator[None]:
    """Lock rows by a foreign session until all work that needs none of them is done."""
    late: list[str] = []
    if lock in NEED_REJECTIONS:
        first = run.place(5, card=DECLINED)
        # lock rows of this cause: earlier drills on this stack left other alerts
        wait_for(lambda: len(run.stack.sql(ALERTED, first)) == 5, "the first are declined", 30)
    with locked(run.stack, lock) as names:
        assert names, f"found no {lock}"
        yield
        others = [order for order in run.orders if order not in late]
        if lock in NEED_REJECTIONS:
            late = run.place(5, card=DECLINED)
            wait_for(lambda: run.stack.count(DEAD_LETTERS, late) > 0, "a rejection waits", 30)
        wait_for(
            lambda: run.stack.count(UNFINISHED, others, names, names) == 0,
            "all other work is done", 60, pause=0.2,
        )  # fmt: skip


@recipe
def postgres_restarted(
    run: Running, *, times: int = 3, gap: float = 5.0, hard: bool = False
) -> Iterator[None]:
    """Stop Postgres, or kill it if `hard`, and start it again, every `gap` seconds."""
    for turn in range(times):
        if turn:
            pause(gap)
        old = run.stack.signal("postgres", signal.SIGKILL if hard else signal.SIGINT)
        run.stack.wait_for_restart("postgres", old, 10)
        wait_for(run.stack.answers, "Postgres answers again", 30)
    yield


@recipe
def postgres_terminated(run: Running, *, times: int = 3) -> Iterator[None]:
    """Terminate every session several times."""
    ended = 0
    for _ in range(times):
        ended += len(run.stack.sql(TERMINATE))
        pause(1)
    assert ended, "no session was terminated"
    yield


@recipe
def postgres_commits_cut(run: Running, *, act: str, every: int = 10) -> Iterator[None]:
    """Cut connections at COMMIT by a proxy: before it arrives, or after its answer."""
    stack = run.stack
    socket = stack.sockets / POSTGRES_SOCKET
    spoil = Spoil(act=act, every=every, chosen=proxy.is_commit)
    with proxy.behind(socket, socket.with_name(".s.PGSQL.5433"), spoil) as spoiled:
        stack.postgres_port = 5433
        try:
            stack.sql(TERMINATE)
            yield
            wait_for(lambda: spoiled.struck >= 3, "COMMITs are cut", 20)
        finally:
            stack.postgres_port = 5432
    stack.sql(TERMINATE)  # no session stays behind the closed proxy


@recipe
def postgres_deadlock(run: Running) -> Iterator[None]:
    """Lock tasks in reverse order; no process waits for them, so no deadlock arises."""
    before = run.stack.count(DEADLOCKS)
    stop, tasks = threading.Event(), Counter[str]()
    arguments = (run.stack, run.orders, stop, tasks)
    locking = threading.Thread(target=_lock_backwards, args=arguments)
    locking.start()
    try:
        yield
        wait_for(lambda: len(tasks) >= MANY_LOCKED, "many tasks were locked", 30, pause=0.2)
        assert run.stack.count(DEADLOCKS) <= before, "a deadlock arose"  # fewer after a crash
    finally:
        stop.set()
        locking.join(30)


def _lock_backwards(
    stack: Stack, orders: list[str], stop: threading.Event, tasks: Counter[str]
) -> None:
    while not stop.is_set():
        connection = stack.connect()
        with suppress(psycopg2.Error), connection, connection.cursor() as cursor:
            # the session that detects a deadlock is its victim: this makes it a worker's
            cursor.execute("SET deadlock_timeout = '20s'")
            cursor.execute(LIVE, (orders,))
            for (task,) in cursor.fetchall():
                cursor.execute("SELECT 1 FROM orchestration_task WHERE id = %s FOR UPDATE", (task,))
                tasks[task] += 1
                if stop.wait(0.02):
                    break
        connection.close()


@recipe
def postgres_full(run: Running) -> Iterator[None]:
    """Open every connection that Postgres allows."""
    opened: list[Any] = []
    try:
        ended = 1
        while ended:  # a terminated session may reconnect first
            while len(opened) < 1000:
                try:
                    opened.append(run.stack.connect())
                except psycopg2.OperationalError:
                    break
            with opened[0], opened[0].cursor() as cursor:
                cursor.execute(TERMINATE)
                ended = cursor.rowcount
        assert len(opened) > 150, "other connections were left open"
        yield
    finally:
        for connection in opened:
            connection.close()


@recipe
def postgres_foreign_session(run: Running, *, locks: bool = False) -> Iterator[None]:
    """Keep a foreign transaction open until the run is quiet; with `locks`, lock tasks meanwhile."""
    connection = run.stack.connect()
    try:
        with connection.cursor() as cursor:
            if not locks:  # to lock what has changed since its snapshot would be an error
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM orchestration_task")
            if locks:
                cursor.execute(
                    "SELECT 1 FROM orchestration_task WHERE reference = ANY(%s) FOR UPDATE",
                    (run.orders[:20],),
                )
            yield
            if not locks:
                run.quiet()
    finally:
        connection.close()
