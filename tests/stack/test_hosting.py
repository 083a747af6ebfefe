"""The smallest installation: two processes that serve every queue each, and a supervisor (U1)."""

import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

from drill.stack import PROCESSED, SUPERVISORS, WORKERS, Stack, end
from drill.verdict import check
from drill.waiting import wait_for
from sasweb.stack import folders
from tests.stack.test_survival import prepare

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
MANY = 150
LATENCY = {"*": 0.1}
FAULTS = [{"partner": "payment", "action": "*", "fault": "reset_after_effect", "probability": 0.1}]
SERVED = "SELECT count(DISTINCT queue) FROM orchestration_worker WHERE pid = %s"
QUEUES = 10
PROCESSES = "SELECT DISTINCT split_part(split_part({}, ':', 2), '-', 1) FROM orchestration_attempt"


@pytest.fixture(scope="module")
def stack():
    """A stack of which only the servers, the web and the partners are left."""
    running = Stack("hosted").start()
    try:
        prepare(running)
        for name in (*WORKERS, *SUPERVISORS):
            running.manage("stopProcess", name)
        yield running
    finally:
        running.stop()


@contextmanager
def process(stack, name, *command):
    """Run a command of ours beside the stack, as an installation's own process manager would."""
    with stack.log.open("ab") as log:
        running = subprocess.Popen(
            [sys.executable, "manage.py", *command],
            env=stack.inside(PROCESS=name),
            cwd=folders.PROJECT,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield running
    finally:
        end(running)


@contextmanager
def host(stack, name):
    """Run a process that serves every queue; wait until it is at work."""
    with process(stack, name, "work", "--all") as running:
        wait_for(lambda: stack.count(SERVED, running.pid) == QUEUES, f"{name} is at work", 30)
        yield running


def test_every_order_ends_once_although_each_process_is_killed_in_turn(stack):
    stack.sandbox("/faults", {"latency": LATENCY, "faults": FAULTS}, "PUT")
    with process(stack, "supervisor", "supervisor"), ExitStack() as later:
        hosts = [later.enter_context(host(stack, f"host-{number}")) for number in (1, 2)]
        placed = stack.place(MANY)
        for number in range(2):
            stack.in_flight(30)
            hosts[number].kill()
            hosts[number].wait()
            stack.processed(stack.count(PROCESSED) + 10)  # the other one goes on alone
            hosts.append(later.enter_context(host(stack, f"host-{number}")))
        stack.quiet()
    check(stack, placed)
    for column in ("scheduler", "agent"):
        at_work = {int(pid) for (pid,) in stack.sql(PROCESSES.format(column)) if pid}
        assert len(at_work & {running.pid for running in hosts}) >= 2, column
