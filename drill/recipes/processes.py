"""Processes that die, freeze, or are asked to stop."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from drill.proxy import Proxy, Spoil
from drill.recipes import Running, recipe
from drill.recipes.partners import watch_windows
from drill.shopper import Shopper
from drill.stack import HOUSEKEEPER, LEADERS, SUPERVISORS, WORKERS, Stack, end, free_port, serving
from drill.waiting import let_pass, wait_for

EXPIRED = "SELECT count(*) FROM orchestration_attempt WHERE outcome = 'expired'"
BUSY = """
SELECT count(*) FROM orchestration_step
WHERE agent = %s AND process_state = 'processing' AND locked_by IS NOT NULL
"""

TRIED_TWICE = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.attempt > 1
"""

IN_ERROR = "SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s) AND state = 'error'"
ENDED = "SELECT fixed, items - fixed FROM orchestration_operation WHERE id = %s AND state = 'ended'"
MISSED = "SELECT count(*) FROM orchestration_alert WHERE closed_at IS NULL AND title LIKE %s"
RESUBMITTED_TWICE = """
SELECT count(*) FROM (
    SELECT e.task_id FROM orchestration_event e JOIN orchestration_task t ON t.id = e.task_id
    WHERE t.reference = ANY(%s) AND e.kind = 'resubmitted' GROUP BY 1 HAVING count(*) > 1
) AS found
"""
WORKER = "SELECT instance, started_at FROM orchestration_worker WHERE pid = %s"
STEPPED_BACK = """
SELECT count(*) FROM orchestration_worker WHERE instance = %s AND stepped_back_at IS NOT NULL
"""
ALERTED = "SELECT count(*) FROM orchestration_alert WHERE fingerprint LIKE %s AND closed_at IS NULL"
OPENED = """
SELECT count(*) FROM orchestration_hold WHERE agent = 'payment' AND cause = 'breaker' AND since > %s
"""


def died(process: "subprocess.Popen[bytes]", point: str, seconds: float = 25) -> None:
    """Wait until a process was killed at its crash point."""
    wait_for(lambda: process.poll() is not None, f"a process reaches {point}", seconds)
    assert process.returncode == -signal.SIGKILL, f"it ended with {process.returncode}"


def named(stack: Stack, name: str) -> str:
    """Return the name of the process that is meant: "leader" is whoever leads now."""
    return name if name != "leader" else wait_for(stack.leader, "somebody leads", 15)


@contextmanager
def without_supervisors(stack: Stack) -> Iterator[None]:
    """Have none of the stack's own supervisors."""
    with ExitStack() as later:
        for name in SUPERVISORS:
            stack.manage("stopProcess", name)
            later.callback(stack.manage, "startProcess", name)
        yield


@contextmanager
def sole_leader(stack: Stack, **environment: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Have one supervisor, in this environment, instead of the stack's own."""
    with stack.replaced("supervisor", **environment) as process:
        yield process


@contextmanager
def tireless(stack: Stack, role: str, name: str) -> Iterator[Callable[[], int]]:
    """Have a process at work that waits for nobody's leave (see `drill.tireless`).

    Gives a function that ends it, and returns how many steps it dealt with.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "drill.tireless", role],
        env=stack.inside(PROCESS=name),
        stdout=subprocess.PIPE,
    )

    def dismiss() -> int:
        process.terminate()
        return int(process.communicate(timeout=20)[0] or 0)

    with process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # it is there before what it shall meet begins
            yield dismiss
        finally:
            end(process)


@recipe
def nothing(run: Running) -> Iterator[None]:  # noqa: ARG001 - as every recipe
    """No fault at all."""
    yield


@recipe
def crash(run: Running, *, process: str, point: str, passing: int = 1) -> Iterator[None]:
    """A process dies when it passes a point of its code; the process manager starts a new one."""
    with run.stack.replaced(process, CRASH_AT=f"{point}:{passing}") as doomed:
        yield
        died(doomed, point)


@recipe
def crash_leader(run: Running, *, point: str, passing: int = 1) -> Iterator[None]:
    """The leading supervisor dies in mid-sweep, while steps fail that it has to count."""
    fault = {"partner": "*", "action": "*", "fault": "reset", "probability": 0.3}
    run.stack.sandbox("/faults", {"faults": [fault]}, "PUT")
    try:
        with sole_leader(run.stack, CRASH_AT=f"{point}:{passing}") as doomed:
            yield
            died(doomed, point)
    finally:
        run.stack.sandbox("/faults", method="DELETE")


@recipe
def crash_operation(run: Running, *, point: str, passing: int = 1) -> Iterator[None]:
    """The housekeeper dies while a bulk operation resubmits every order: each is resubmitted once."""
    reject = {"partner": "shipping", "action": "book", "fault": "reject"}
    run.stack.sandbox("/faults", {"faults": [reject]}, "PUT")
    try:
        yield
        wait_for(lambda: run.stack.count(IN_ERROR, run.orders) == len(run.orders), "all fail", 90)
    finally:
        run.stack.sandbox("/faults", method="DELETE")
    operation = int(run.stack.python("drill.act", "resubmit", *run.orders))
    with run.stack.replaced(HOUSEKEEPER, CRASH_AT=f"{point}:{passing}") as doomed:
        died(doomed, point, 40)
    run.quiet()
    told = wait_for(
        lambda: run.stack.sql(ENDED, operation), "the operation has ended", 20, pause=0.2
    )
    assert told == [(len(run.orders), 0)], f"fixed, not fixed: {told}"
    twice = run.stack.count(RESUBMITTED_TWICE, run.orders)
    assert not twice, f"{twice} orders were resubmitted twice"


@recipe
def crash_web(run: Running, *, passing: int = 2, customers: int = 6) -> Iterator[None]:
    """The web process dies after an order was committed; the customer sends the page again."""
    point = "web.after_commit_before_ring"
    with run.stack.replaced("web", CRASH_AT=f"{point}:{passing}"):
        shoppers = [Shopper(run.stack.port) for _ in range(customers)]
        run.orders += [shopper.buy() for shopper in shoppers]
        yield
        broken = sum(shopper.broken for shopper in shoppers)
        assert broken, "no customer saw the web process die"


@recipe
def kill(run: Running, *, processes: list[str], busy: str = "", times: int = 1) -> Iterator[None]:
    """kill -9 of processes, one after the other; `busy` waits until that agent has calls under way."""
    for _ in range(times):
        for name in processes:
            if busy:
                # one: no more are under way where another fault has opened its breaker
                wait_for(lambda: run.stack.count(BUSY, busy) > 0, f"{busy} is at work", 20)
            for one in serving(named(run.stack, name)):
                run.stack.kill(one)
    yield


@recipe
def freeze(run: Running, *, process: str, until: str = "expired") -> Iterator[None]:
    """SIGSTOP; SIGCONT once its deadlines have passed ("expired"), another leads ("replaced"), or an alert
    says that none does ("missed").
    """
    before = run.stack.count(EXPIRED)
    name = named(run.stack, process)
    with run.stack.frozen(name):
        if until == "replaced":
            wait_for(lambda: run.stack.leader() not in {"", name}, "another one leads", 15)
        elif until == "missed":
            wait_for(lambda: run.stack.count(MISSED, f"%{name}%"), "it is missed", 40)
        elif until == "expired":
            wait_for(lambda: run.stack.count(EXPIRED) > before, "its steps expire", 25)
        yield


@recipe
def scheduled_supervisor(run: Running, *, times: int = 8) -> Iterator[None]:
    """No supervisor resides: a schedule starts one for each sweep, two at a time, while calls fail."""
    fault = {"partner": "*", "action": "*", "fault": "reset", "probability": 0.3}
    run.stack.sandbox("/faults", {"faults": [fault]}, "PUT")
    command = [sys.executable, "manage.py", "supervisor", "--once"]
    stop = threading.Event()
    failed: list[int] = []

    def start() -> None:
        while not stop.wait(0.2):
            failed.append(run.stack.run(command, check=False, PROCESS="scheduled").returncode)

    schedules = [threading.Thread(target=start) for _ in range(2)]
    try:
        with without_supervisors(run.stack):
            for schedule in schedules:
                schedule.start()
            yield
            wait_for(lambda: len(failed) >= times, "the schedule has started some", 60)
            run.stack.sandbox("/faults", method="DELETE")
            run.quiet()
            stop.set()
            for schedule in schedules:
                schedule.join(30)
            assert not any(failed), f"they ended with {failed}"
    finally:
        stop.set()
        run.stack.sandbox("/faults", method="DELETE")


@recipe
def two_leaders(run: Running) -> Iterator[None]:
    """A supervisor that leads without a lease sweeps beside the one that has it, as fast as it can."""
    fault = {"partner": "*", "action": "*", "fault": "reset", "probability": 0.3}
    run.stack.sandbox("/faults", {"faults": [fault]}, "PUT")
    try:
        with tireless(run.stack, "supervisor", "usurper") as dismiss:
            yield
            assert dismiss() > 0, "the usurper found nothing to do"
    finally:
        run.stack.sandbox("/faults", method="DELETE")


@contextmanager
def one_more(stack: Stack, name: str, **environment: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Have one more process like `name` beside the stack's own, in another environment."""
    process = stack.beside(name, **environment)
    try:
        yield process
    finally:
        end(process)


@recipe
def sick_instance(run: Running) -> Iterator[None]:
    """The way of one worker of three to its partner is broken: it steps back, and returns once healed.

    Few slots, and a partner that takes its time, have all three at work.
    """
    slow = {"partner": "payment", "action": "*", "fault": "slow", "seconds": 0.2}
    run.stack.sandbox("/faults", {"faults": [slow]}, "PUT")
    few = {"AGENT_SLOTS": "payment=4"}
    way, port = Spoil(), free_port()
    with ExitStack() as later:
        later.callback(run.stack.sandbox, "/faults", None, "DELETE")
        later.enter_context(Proxy(port, run.stack.sandbox_port, way))
        later.enter_context(run.stack.replaced("work-payment", **few))
        one = "work-payment-1"
        later.enter_context(one_more(run.stack, one, **few))
        its_own = {"PAYMENT_URL": f"http://127.0.0.1:{port}", **few}
        sick = later.enter_context(one_more(run.stack, one, **its_own))
        found = wait_for(lambda: run.stack.sql(WORKER, sick.pid), "it reports itself", 20)
        name = found[0][0]
        way.act = "cut_before"
        yield

        def placing(condition: Callable[[], bool], what: str) -> None:
            wait_for(lambda: condition() or not run.place(30), what, 90)

        placing(lambda: run.stack.count(STEPPED_BACK, name) == 1, "it steps back")
        wait_for(lambda: run.stack.count(ALERTED, f"%{name}") == 1, "an alert names it", 15)
        run.place(30)
        run.quiet()
        assert run.stack.count(STEPPED_BACK, name) == 1, "it returned though it is sick"
        way.act = ""
        placing(lambda: run.stack.count(STEPPED_BACK, name) == 0, "it takes part again")
        wait_for(lambda: run.stack.count(ALERTED, f"%{name}") == 0, "its alert is closed", 15)
        opened = run.stack.count(OPENED, found[0][1])
        assert not opened, "the failures of one worker opened the breaker for all"
        run.quiet()


@recipe
def many_schedulers(run: Running, *, more: int = 3, watched: float = 4) -> Iterator[None]:
    """Several schedulers claim at the same time; together they keep to the windows.

    The doorbell brings one scheduler at a time: these attend without it, so that they do meet. As
    nothing else is wrong, whatever is tried twice was claimed twice.
    """
    with ExitStack() as later:
        eager = [
            later.enter_context(tireless(run.stack, "scheduler", f"eager-{number}"))
            for number in range(more)
        ]
        yield
        watch_windows(run, watched)
        claimed_once(run)
        run.quiet()
        won = [dismiss() for dismiss in eager]
    assert all(won), f"there was no race of {more + 1}: the others won {won} steps"
    claimed_once(run)


def claimed_once(run: Running) -> None:
    """Fail if a step was tried more than once."""
    twice = run.stack.count(TRIED_TWICE, run.orders)
    assert not twice, f"{twice} steps were claimed twice"


@recipe
def sigterm(run: Running, *, times: int = 1) -> Iterator[None]:
    """Every process is asked to stop, once or more, and started again: a deploy."""
    for name in (*WORKERS, *LEADERS, "web"):
        old = run.stack.signal(name, signal.SIGTERM)
        for _ in range(times - 1):
            let_pass(0.1)
            try:
                os.kill(old, signal.SIGTERM)
            except ProcessLookupError:
                break
        run.stack.started_again(name, old, 20)
    yield


@recipe
def poison(run: Running, *, process: str, agent: str) -> Iterator[None]:
    """One order kills the agent's worker at each attempt; only that one ends in error."""
    # the thresholds that the product comes with: waits that grow, so that others get out of its way
    change = (
        "UPDATE orchestration_policy SET failure_threshold = %s, backoff = %s, backoff_cap = %s"
        " WHERE agent = %s"
    )
    columns = "failure_threshold, backoff, backoff_cap"
    (before,) = run.stack.sql(f"SELECT {columns} FROM orchestration_policy WHERE agent = %s", agent)
    run.stack.sql(change, 5, 1, 60, agent)
    for one in serving(process):
        run.stack.manage("stopProcess", one)
    stop = threading.Event()
    try:
        yield
        bad = run.orders[len(run.orders) // 2]
        keeper = threading.Thread(target=_keep, args=(run.stack, process, bad, stop))
        keeper.start()
        state = "SELECT count(*) FROM orchestration_task WHERE reference = %s AND state = 'error'"
        wait_for(lambda: run.stack.count(state, bad), "the order is in error", 90, pause=0.2)
        stop.set()
        keeper.join(30)
        others = run.stack.count(IN_ERROR, run.orders) - 1
        assert not others, f"{others} other orders ended in error with it"
    finally:
        stop.set()
        run.stack.sql(change, *before, agent)
        for one in serving(process):
            run.stack.manage("startProcess", one)


def _keep(stack: Stack, name: str, order: str, stop: threading.Event) -> None:
    """Start the process again and again, as a process manager does, until told to stop."""
    while not stop.is_set():
        process = stack.beside(serving(name)[0], CRASH_AT=f"agent.before_call:1:{order}")
        while process.poll() is None and not stop.wait(0.1):
            pass
        end(process)
