"""Postgres: restarted, cut off, deadlocked, full, or held by a stranger's transaction."""

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
from drill.stack import POSTGRES_SOCKET, Stack
from drill.verdict import ALERTED
from drill.waiting import let_pass, wait_for

OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sas'"
MANY_LOCKED = 40
DEADLOCKS = "SELECT sum(deadlocks) FROM pg_stat_database"
LIVE = """
SELECT id FROM orchestration_task WHERE reference = ANY(%s)
AND state IN ('pending', 'processing') ORDER BY id DESC LIMIT 40
"""

# What a stranger's session may lock, of the oldest that there are.
LOCKS = {
    "pending task": "SELECT id FROM orchestration_task WHERE state = 'pending' ORDER BY id LIMIT 1"
    " FOR UPDATE",
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
# What goes on meanwhile, or should.
GOING_ON = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND t.id::text <> ALL(%s) AND s.agent <> ALL(%s)
  AND s.process_state IN ('pending', 'processing')
"""
WAITING_FOR_ALERT = """
SELECT count(*) FROM orchestration_deadletter d JOIN orchestration_step s ON s.id = d.step
JOIN orchestration_task t ON t.id = s.task_id WHERE t.reference = ANY(%s)
"""


@contextmanager
def held(stack: Stack, lock: str) -> Iterator[list[str]]:
    """Hold one of `LOCKS` in a session of its own; give what names the rows."""
    connection = stack.connect()
    try:
        with connection.cursor() as cursor:
            cursor.execute(LOCKS[lock])
            yield [str(name) for (name,) in cursor.fetchall()]
    finally:
        connection.close()


@recipe
def postgres_locked(run: Running, *, lock: str) -> Iterator[None]:
    """A stranger locks some rows until all that does not need them is done."""
    late: list[str] = []
    if lock in NEED_REJECTIONS:
        first = run.place(5, card=DECLINED)
        # what there is to lock must be of this cause: a stack that was used has other alerts
        wait_for(lambda: len(run.stack.sql(ALERTED, first)) == 5, "the first are declined", 30)
    with held(run.stack, lock) as names:
        assert names, f"there was no {lock}"
        yield
        others = [order for order in run.orders if order not in late]
        if lock in NEED_REJECTIONS:
            late = run.place(5, card=DECLINED)
            wait_for(lambda: run.stack.count(WAITING_FOR_ALERT, late) > 0, "a rejection waits", 30)
        wait_for(
            lambda: run.stack.count(GOING_ON, others, names, names) == 0,
            "all that needs no locked row is done", 60, pause=0.2,
        )  # fmt: skip


@recipe
def postgres_restarted(
    run: Running, *, times: int = 3, gap: float = 5.0, hard: bool = False
) -> Iterator[None]:
    """Postgres is stopped (or killed) and started again, every `gap` seconds."""
    for turn in range(times):
        if turn:
            let_pass(gap)
        old = run.stack.signal("postgres", signal.SIGKILL if hard else signal.SIGINT)
        run.stack.started_again("postgres", old, 10)
        wait_for(run.stack.answers, "Postgres answers again", 30)
    yield


@recipe
def postgres_terminated(run: Running, *, times: int = 3) -> Iterator[None]:
    """Every session is ended by an administrator, again and again."""
    ended = 0
    for _ in range(times):
        ended += len(run.stack.sql(OTHERS))
        let_pass(1)
    assert ended, "there was no session to end"
    yield


@recipe
def postgres_commits_cut(run: Running, *, act: str, every: int = 10) -> Iterator[None]:
    """A proxy cuts connections at COMMIT: before it arrives, or after it was answered."""
    stack = run.stack
    socket = stack.sockets / POSTGRES_SOCKET
    spoil = Spoil(act=act, every=every, chosen=proxy.is_commit)
    with proxy.behind(socket, socket.with_name(".s.PGSQL.5433"), spoil) as spoiled:
        stack.postgres_port = 5433
        try:
            stack.sql(OTHERS)
            yield
            wait_for(lambda: spoiled.struck >= 3, "COMMITs are cut", 20)
        finally:
            stack.postgres_port = 5432
    stack.sql(OTHERS)  # nobody stays behind a proxy that is gone


@recipe
def postgres_deadlock(run: Running) -> Iterator[None]:
    """A stranger locks tasks in the wrong order; no process waits for these: there is no deadlock."""
    before = run.stack.count(DEADLOCKS)
    stop, locked = threading.Event(), Counter[str]()
    given = (run.stack, run.orders, stop, locked)
    troublemaker = threading.Thread(target=_lock_backwards, args=given)
    troublemaker.start()
    try:
        yield
        wait_for(lambda: len(locked) >= MANY_LOCKED, "many tasks were locked", 30, pause=0.2)
        assert run.stack.count(DEADLOCKS) <= before, "there was a deadlock"  # a crash forgets them
    finally:
        stop.set()
        troublemaker.join(30)


def _lock_backwards(
    stack: Stack, orders: list[str], stop: threading.Event, locked: Counter[str]
) -> None:
    while not stop.is_set():
        connection = stack.connect()
        with suppress(psycopg2.Error), connection, connection.cursor() as cursor:
            # the session that finds a deadlock is its victim: it would be one of the workers
            cursor.execute("SET deadlock_timeout = '20s'")
            cursor.execute(LIVE, (orders,))
            for (task,) in cursor.fetchall():
                cursor.execute("SELECT 1 FROM orchestration_task WHERE id = %s FOR UPDATE", (task,))
                locked[task] += 1
                if stop.wait(0.02):
                    break
        connection.close()


@recipe
def postgres_full(run: Running) -> Iterator[None]:
    """Strangers hold every connection that Postgres allows."""
    held: list[Any] = []
    try:
        ended = 1
        while ended:  # what is ended may come back before its place is taken
            while len(held) < 1000:
                try:
                    held.append(run.stack.connect())
                except psycopg2.OperationalError:
                    break
            with held[0], held[0].cursor() as cursor:
                cursor.execute(OTHERS)
                ended = cursor.rowcount
        assert len(held) > 150, "the connections ran out too soon"
        yield
    finally:
        for connection in held:
            connection.close()


@recipe
def postgres_stranger(run: Running, *, locks: bool = False) -> Iterator[None]:
    """A foreign transaction stays open for the whole run; with `locks`, it holds tasks for a while."""
    connection = run.stack.connect()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT count(*) FROM orchestration_task")
            if locks:
                cursor.execute(f"SELECT 1 FROM ({LIVE}) t", (run.orders,))
                cursor.execute(
                    "SELECT 1 FROM orchestration_task WHERE reference = ANY(%s) FOR UPDATE",
                    (run.orders[:20],),
                )
            yield
            if not locks:
                run.quiet()
    finally:
        connection.close()
