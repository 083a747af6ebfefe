"""The smallest installation: two processes that serve every queue each, and a schedule (S1, S6)."""

import sys
import threading
from contextlib import ExitStack, contextmanager

import pytest

from drill.process_names import LEADERS, QUEUES, SERVED_BESIDE, WORKERS
from drill.stack import PROCESSED, Stack
from drill.verdict import audited, check
from drill.waiting import wait_for
from tests.support.stacks import prepare

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
MANY = 100  # orders before each is killed
LATENCY = {"*": 0.1}
FAULTS = [{"partner": "payment", "action": "*", "fault": "reset_after_effect", "probability": 0.1}]
SERVED = "SELECT count(DISTINCT queue) FROM orchestration_worker WHERE pid = %s"
PROCESSES = "SELECT DISTINCT split_part(split_part({}, ':', 2), '-', 1) FROM orchestration_attempt"


@pytest.fixture(scope="module")
def stack():
    """A stack with only the servers, the web and the partners running."""
    with audited(Stack("hosted")) as running:
        prepare(running)
        for name in (*WORKERS, *LEADERS):
            running.manage("stopProcess", name)
        yield running


@contextmanager
def host(stack, name):
    """Run a process that serves every queue; wait until it serves them."""
    running = stack.spawn([sys.executable, "manage.py", "work", "--all"], name)
    try:
        served = len(QUEUES) + len(SERVED_BESIDE)
        wait_for(lambda: stack.count(SERVED, running.pid) == served, f"{name} is at work", 30)
        yield running
    finally:
        running.end()


@contextmanager
def scheduled(stack, *names):
    """Run these commands with `--once` every few seconds, as cron would."""
    over = threading.Event()
    ended = []

    def run():
        while not over.wait(3.0):
            for name in names:
                command = [sys.executable, "manage.py", name, "--once"]
                ended.append(stack.run(command, check=False, PROCESS=name).returncode)

    schedule = threading.Thread(target=run)
    schedule.start()
    try:
        yield
    finally:
        over.set()
        schedule.join()
    assert set(ended) == {0}


def test_orders_end_once_while_each_process_is_killed_in_turn(stack):
    stack.sandbox("/faults", {"latency": LATENCY, "faults": FAULTS}, "PUT")
    with scheduled(stack, "supervisor", "housekeeper"), ExitStack() as later:
        hosts = [later.enter_context(host(stack, f"host-{number}")) for number in (1, 2)]
        placed = []
        for number in range(2):
            placed += stack.place(MANY, flying=MANY // 4)
            hosts[number].kill()
            hosts[number].wait()
            stack.processed(stack.count(PROCESSED) + 10)  # the other one goes on alone
            hosts.append(later.enter_context(host(stack, f"host-{number}")))
        stack.quiet()
    check(stack, placed)
    for column in ("scheduler", "agent"):
        at_work = {int(pid) for (pid,) in stack.sql(PROCESSES.format(column)) if pid}
        assert len(at_work & {running.pid for running in hosts}) >= 2, column
