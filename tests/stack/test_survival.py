"""Processes and servers die with orders in flight: none is lost, charged twice, or stuck."""

import signal
import subprocess
import time

import pytest

from drill.process_names import LEADERS, WORKERS
from drill.recipes.clocks import faked
from drill.stack import Stack
from drill.verdict import audited, check
from drill.waiting import wait_for
from tests.support.stacks import prepare

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
MANY = 100


@pytest.fixture(scope="module")
def stack():
    with audited(Stack("survival")) as running:
        prepare(running)
        yield running


@pytest.fixture
def orders(stack):
    """Orders in flight; at teardown each must be processed once."""
    placed = stack.place(MANY, flying=50)
    yield placed
    stack.quiet()
    check(stack, placed)


def test_orders_survive_kills_of_each_worker(stack, orders):
    for name in (*WORKERS, "web", "sandbox"):
        stack.kill(name)


def test_orders_survive_a_kill_of_the_leader(stack, orders):
    first = wait_for(stack.leader, "a supervisor leads")
    statement = "SELECT epoch FROM orchestration_lease WHERE name = 'supervisor'"
    epoch = stack.count(statement)
    started = time.monotonic()
    stack.signal(first, signal.SIGKILL)
    wait_for(
        lambda: stack.leader() and stack.count(statement) > epoch,
        "another supervisor leads",
        10,
    )
    assert time.monotonic() - started <= 10


def test_orders_survive_workers_frozen_beyond_their_deadlines(stack, orders):
    # steps expire whose scheduler reads no replies, and those that the payment agent holds
    held = (
        "SELECT count(*) FROM orchestration_step"
        " WHERE process_state = 'processing' AND locked_by IS NOT NULL AND agent = 'payment'"
    )
    expired = "SELECT count(*) FROM orchestration_attempt WHERE outcome = 'expired'"
    for name in ("work-scheduler", "work-payment"):
        wait_for(lambda: stack.count(held) >= 3, "payment is at work")
        before = stack.count(expired)
        with stack.frozen(name):
            wait_for(lambda before=before: stack.count(expired) > before, "its steps expire", 20)


def test_orders_survive_a_wiped_redis(stack, orders):
    for _ in range(3):
        with stack.redis() as client:
            client.flushall()
        done = stack.count("SELECT count(*) FROM orchestration_task WHERE state = 'processed'")
        stack.processed(done + 10)


def test_orders_are_accepted_while_redis_is_stopped(stack, orders):
    stack.manage("stopProcess", "redis")
    away_since = time.monotonic()
    more = stack.place(20)
    assert len(more) == 20
    wait_for(lambda: time.monotonic() - away_since >= 30, "thirty seconds pass", 40, pause=0.5)
    stack.manage("startProcess", "redis")
    stack.quiet()
    check(stack, more)


def test_orders_survive_restarts_of_postgres(stack, orders):
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        old = stack.signal("postgres", number)
        wait_for(lambda old=old: stack.pid("postgres") not in {0, old}, "it is started again", 10)
        wait_for(stack.answers, "Postgres answers again", 30)
        done = stack.count("SELECT count(*) FROM orchestration_task WHERE state = 'processed'")
        stack.processed(done + 5)


@pytest.mark.parametrize(("agents", "schedulers"), [("+5m", "-5m"), ("-5m", "+5m")])
def test_orders_survive_clocks_five_minutes_off(stack, orders, agents, schedulers):
    odd = (
        "SELECT count(DISTINCT queue) FROM orchestration_worker"
        " WHERE queue IN ('payment', 'scheduler') AND abs(clock_offset) > 290"
    )
    failed = "SELECT count(*) FROM orchestration_attempt WHERE outcome = 'expired'"
    alerts = (
        "SELECT count(*) FROM orchestration_alert WHERE fingerprint LIKE %s AND closed_at IS NULL"
    )
    before = stack.count(failed)
    with (
        stack.replaced("work-payment", **faked(agents)),
        stack.replaced("work-scheduler", **faked(schedulers)),
    ):
        wait_for(lambda: stack.count(odd) == 2, "the workers with odd clocks are at work", 20)
        wait_for(lambda: stack.count(alerts, "system/clock/%") == 1, "an alert says so", 15)
        stack.quiet()
    wait_for(lambda: stack.count(alerts, "system/clock/%") == 0, "it closes with them", 25)
    # steps in flight while workers change may expire, but not those of workers with odd clocks
    assert stack.count(failed) - before < MANY / 5


def test_processes_end_their_work_after_sigterm(stack, orders):
    """As in a deploy: every process gets SIGTERM, and the process manager starts it again."""
    for name in (*WORKERS, *LEADERS):
        old = stack.signal(name, signal.SIGTERM)
        wait_for(lambda name=name, old=old: stack.pid(name) not in {0, old}, f"{name} is new", 15)


def test_no_process_remains_after_a_stop(stack):
    """It stops the stack of this file, so it is the last test here."""
    pids = [process["pid"] for process in stack.manage("getAllProcessInfo")]
    started = time.monotonic()
    stack.stop()
    assert time.monotonic() - started < 5
    left = subprocess.run(
        ["ps", "-o", "pid=,args=", "-p", ",".join(map(str, pids))],
        capture_output=True,
        text=True,
        check=False,  # it fails when it finds none
    )
    assert left.stdout == ""
