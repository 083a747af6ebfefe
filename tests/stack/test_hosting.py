"""The smallest installation: two processes that serve every queue each, and a schedule (S1, S6)."""

import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager

import pytest

from drill.recipes.redis import QUEUES
from drill.stack import LEADERS, PROCESSED, WORKERS, Stack, end
from drill.verdict import check
from drill.waiting import wait_for
from sasweb.stack import folders
from tests.stack.test_survival import prepare

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
MANY = 100  # orders before each is killed
LATENCY = {"*": 0.1}
FAULTS = [{"partner": "payment", "action": "*", "fault": "reset_after_effect", "probability": 0.1}]
SERVED = "SELECT count(DISTINCT queue) FROM orchestration_worker WHERE pid = %s"
PROCESSES = "SELECT DISTINCT split_part(split_part({}, ':', 2), '-', 1) FROM orchestration_attempt"


@pytest.fixture(scope="module")
def stack():
    """A stack of which only the servers, the web and the partners are left."""
    running = Stack("hosted").start()
    try:
        prepare(running)
        for name in (*WORKERS, *LEADERS):
            running.manage("stopProcess", name)
        yield running
    finally:
        running.stop()


@contextmanager
def host(stack, name):
    """Run a process that serves every queue; wait until it is at work."""
    with stack.log.open("ab") as log:
        running = subprocess.Popen(
            [sys.executable, "manage.py", "work", "--all"],
            env=stack.inside(PROCESS=name),
            cwd=folders.PROJECT,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        served = len(QUEUES)
        wait_for(lambda: stack.count(SERVED, running.pid) == served, f"{name} is at work", 30)
        yield running
    finally:
        end(running)


@contextmanager
def scheduled(stack, *names):
    """Start these once, and again after a second, as a schedule would; none resides."""
    over = threading.Event()
    ended = []

    def run():
        while not over.wait(1.0):
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


def test_every_order_ends_once_although_each_process_is_killed_in_turn(stack):
    stack.sandbox("/faults", {"latency": LATENCY, "faults": FAULTS}, "PUT")
    with scheduled(stack, "supervisor", "housekeeper"), ExitStack() as later:
        hosts = [later.enter_context(host(stack, f"host-{number}")) for number in (1, 2)]
        placed = []
        for number in range(2):
            placed += stack.place(MANY)
            stack.in_flight(MANY // 4)
            hosts[number].kill()
            hosts[number].wait()
            stack.processed(stack.count(PROCESSED) + 10)  # the other one goes on alone
            hosts.append(later.enter_context(host(stack, f"host-{number}")))
        stack.quiet()
    check(stack, placed)
    for column in ("scheduler", "agent"):
        at_work = {int(pid) for (pid,) in stack.sql(PROCESSES.format(column)) if pid}
        assert len(at_work & {running.pid for running in hosts}) >= 2, column
