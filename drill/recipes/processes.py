"""Processes that freeze, compete, run from a schedule, or receive SIGTERM."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from drill.process import Process, free_port
from drill.process_names import LEADERS, WORKERS
from drill.proxy import Proxy, Spoil
from drill.recipes import Running, recipe
from drill.recipes.partners import FLAKY, scripted, watch_windows
from drill.stack import Stack
from drill.waiting import pause, wait_for

EXPIRED = "SELECT count(*) FROM orchestration_attempt WHERE outcome = 'expired'"
# every claim follows an attempt that ended without success; a claim of a step in process does not
CLAIMED_TWICE = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.attempt > 1 + (
    SELECT count(*) FROM orchestration_attempt a
    WHERE a.step_id = s.id AND a.number < s.attempt AND a.outcome <> 'done'
)
"""
MISSED = "SELECT count(*) FROM orchestration_alert WHERE closed_at IS NULL AND title LIKE %s"
RESTARTED_WITHIN_S = 80  # a worker keeps its replies for a minute while Redis is away
WORKER = "SELECT instance, started_at FROM orchestration_worker WHERE pid = %s"
STEPPED_BACK = """
SELECT count(*) FROM orchestration_worker WHERE instance = %s AND stepped_back_at IS NOT NULL
"""
ALERTED = "SELECT count(*) FROM orchestration_alert WHERE fingerprint LIKE %s AND closed_at IS NULL"
BREAKER_OPENED = """
SELECT count(*) FROM orchestration_hold WHERE agent = 'payment' AND cause = 'breaker' AND since > %s
"""


def resolve(stack: Stack, name: str) -> str:
    """Return the name of a process; "leader" is the supervisor that leads now."""
    return name if name != "leader" else wait_for(stack.leader, "a supervisor leads", 15)


@contextmanager
def rogue_process(stack: Stack, role: str, name: str) -> Iterator[Callable[[], int]]:
    """Run a process that ignores doorbells or the lease (see `drill.rogue_process`).

    Yields a function that ends the process and returns the number of steps it handled.
    """
    command = [sys.executable, "-m", "drill.rogue_process", role]
    variables = stack.inside(PROCESS=name)
    process = Process(command, stack.log, env=variables, stdout=subprocess.PIPE)

    def dismiss() -> int:
        process.terminate()
        return int(process.communicate(timeout=20)[0] or 0)

    with process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # printed when it is ready
            yield dismiss
        finally:
            process.end()


@recipe
def nothing(run: Running) -> Iterator[None]:  # noqa: ARG001 - the signature of every recipe
    """Apply no fault."""
    yield


@recipe
def freeze(run: Running, *, process: str, until: str = "expired") -> Iterator[None]:
    """Suspend a process with SIGSTOP; resume it with SIGCONT as the fault begins.

    That is once its steps have expired ("expired"), another process leads ("replaced") or an alert
    reports that no process leads ("missed").
    """
    before = run.stack.count(EXPIRED)
    name = resolve(run.stack, process)
    with run.stack.frozen(name):
        if until == "replaced":
            wait_for(lambda: run.stack.leader() not in {"", name}, "another process leads", 15)
        elif until == "missed":
            wait_for(lambda: run.stack.count(MISSED, f"%{name}%"), "an alert is open", 40)
        elif until == "expired":
            wait_for(lambda: run.stack.count(EXPIRED) > before, "its steps expire", 25)
    yield


@recipe
def scheduled_supervisor(run: Running, *, times: int = 8) -> Iterator[None]:
    """Run no resident supervisor; two schedules start one for each sweep, while calls fail."""
    command = [sys.executable, "manage.py", "supervisor", "--once"]
    stop = threading.Event()
    codes: list[int] = []

    def start() -> None:
        while not stop.wait(0.2):
            codes.append(run.stack.run(command, check=False, PROCESS="scheduled").returncode)

    schedules = [threading.Thread(target=start) for _ in range(2)]
    with ExitStack() as later:
        later.enter_context(scripted(run.stack, FLAKY))
        later.enter_context(run.stack.stopped("supervisor"))
        later.callback(stop.set)
        for schedule in schedules:
            schedule.start()
        yield
        wait_for(lambda: len(codes) >= times, f"{times} sweeps have ended", 60)
        run.stack.sandbox("/faults", method="DELETE")
        run.quiet()
        stop.set()
        for schedule in schedules:
            schedule.join(30)
        assert not any(codes), f"the exit codes were {codes}"


@recipe
def two_leaders(run: Running) -> Iterator[None]:
    """Run a supervisor without a lease, without pauses, beside the one that holds it."""
    with (
        scripted(run.stack, FLAKY),
        rogue_process(run.stack, "supervisor", "usurper") as dismiss,
    ):
        yield
        assert dismiss() > 0, "the supervisor without a lease found nothing to do"


@contextmanager
def one_more(stack: Stack, name: str, **environment: str) -> Iterator[Process]:
    """Run one more process like `name` beside the stack's own, in another environment."""
    process = stack.beside(name, **environment)
    try:
        yield process
    finally:
        process.end()


@recipe
def sick_instance(run: Running) -> Iterator[None]:
    """Cut every call of one worker of three: it steps back, and returns once healed.

    All three are at work because they have few slots and a slow partner.
    """
    slow = {"partner": "payment", "action": "*", "fault": "slow", "seconds": 0.2}
    few = {"AGENT_SLOTS": "payment=4"}
    spoil, port = Spoil(), free_port()
    with ExitStack() as later:
        later.enter_context(scripted(run.stack, slow))
        later.enter_context(Proxy(port, run.stack.sandbox_port, spoil))
        later.enter_context(run.stack.replaced("work-payment", **few))
        proxied = {"PAYMENT_URL": f"http://127.0.0.1:{port}", **few}
        sick = later.enter_context(one_more(run.stack, "work-payment-1", **proxied))
        rows = wait_for(lambda: run.stack.sql(WORKER, sick.pid), "it reports itself", 20)
        name, started_at = rows[0]
        spoil.act = "cut_before"
        yield

        def placing_until(condition: Callable[[], bool], what: str) -> None:
            wait_for(lambda: condition() or not run.place(30), what, 90)

        placing_until(lambda: run.stack.count(STEPPED_BACK, name) == 1, "it steps back")
        wait_for(lambda: run.stack.count(ALERTED, f"%{name}") == 1, "an alert names it", 15)
        run.place(30)
        run.quiet()
        assert run.stack.count(STEPPED_BACK, name) == 1, "it returned before it was healed"
        spoil.act = ""
        placing_until(lambda: run.stack.count(STEPPED_BACK, name) == 0, "it returns")
        wait_for(lambda: run.stack.count(ALERTED, f"%{name}") == 0, "its alert is closed", 15)
        opened = run.stack.count(BREAKER_OPENED, started_at)
        assert not opened, "the failures of one worker opened the breaker for all"
        run.quiet()


@recipe
def many_schedulers(run: Running, *, more: int = 3, watched: float = 4) -> Iterator[None]:
    """Run several schedulers that claim at the same time; together they respect the windows.

    A doorbell wakes one scheduler at a time, so the additional ones ignore doorbells.
    """
    with ExitStack() as later:
        eager = [
            later.enter_context(rogue_process(run.stack, "scheduler", f"eager-{number}"))
            for number in range(more)
        ]
        yield
        watch_windows(run, watched)
        assert_claimed_once(run)
        run.quiet()
        claims = [dismiss() for dismiss in eager]
    assert all(claims), f"the {more} additional schedulers did not all claim: {claims}"
    assert_claimed_once(run)


def assert_claimed_once(run: Running) -> None:
    """Fail if a step was claimed while it was in process, or after it was done."""
    twice = run.stack.count(CLAIMED_TWICE, run.orders)
    assert not twice, f"{twice} steps were claimed twice"


@recipe
def sigterm(run: Running, *, times: int = 1) -> Iterator[None]:
    """Send SIGTERM to every process, once or more often; each is started again, as in a deploy."""
    for name in (*WORKERS, *LEADERS, "web"):
        old = run.stack.signal(name, signal.SIGTERM)
        for _ in range(times - 1):
            pause(0.1)
            try:
                os.kill(old, signal.SIGTERM)
            except ProcessLookupError:
                break
        run.stack.wait_for_restart(name, old, RESTARTED_WITHIN_S)
    yield
