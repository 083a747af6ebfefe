"""Processes that are killed, at a point of their code or at any time."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from drill.process import Ending
from drill.process_names import processes_named
from drill.recipes import Running, recipe
from drill.recipes.partners import FLAKY, scripted
from drill.recipes.processes import resolve
from drill.release import Release
from drill.shopper import Shopper
from drill.stack import Stack
from drill.waiting import wait_for

BUSY = """
SELECT count(*) FROM orchestration_step
WHERE agent = %s AND process_state = 'processing' AND locked_by IS NOT NULL
"""
IN_ERROR = "SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s) AND state = 'error'"
ENDED = "SELECT fixed, items - fixed FROM orchestration_operation WHERE id = %s AND state = 'ended'"
RESUBMITTED_TWICE = """
SELECT count(*) FROM (
    SELECT e.task_id FROM orchestration_event e JOIN orchestration_task t ON t.id = e.task_id
    WHERE t.reference = ANY(%s) AND e.kind = 'resubmitted' GROUP BY 1 HAVING count(*) > 1
) AS found
"""
THRESHOLDS = "failure_threshold, backoff, backoff_cap"
READ_THRESHOLDS = f"SELECT {THRESHOLDS} FROM orchestration_policy WHERE agent = %s"
SET_THRESHOLDS = f"UPDATE orchestration_policy SET ({THRESHOLDS}) = (%s, %s, %s) WHERE agent = %s"


@contextmanager
def doomed(stack: Stack, name: str, point: str, passing: int) -> Iterator[Sequence[Ending]]:
    """Have the processes of a name be killed when they pass a crash point for the nth time."""
    with (
        Release(stack, CRASH_AT=f"{point}:{passing}") as release,
        release.in_place_of(name) as processes,
    ):
        yield processes


def wait_for_crash(processes: Sequence[Ending], point: str, seconds: float = 25) -> None:
    """Wait until one of these processes has been killed at its crash point."""

    def ended() -> list[int]:
        return [code for process in processes if (code := process.poll()) is not None]

    codes = wait_for(ended, f"a process reaches {point}", seconds)
    assert set(codes) == {-signal.SIGKILL}, f"they ended with {codes}"


@recipe
def crash(run: Running, *, process: str, point: str, passing: int = 1) -> Iterator[None]:
    """Kill a process when it passes a crash point for the nth time."""
    with doomed(run.stack, process, point, passing) as processes:
        yield
        wait_for_crash(processes, point)


@recipe
def crash_leader(run: Running, *, point: str, passing: int = 1) -> Iterator[None]:
    """Kill the leading supervisor in mid-sweep, while calls fail."""
    with (
        scripted(run.stack, FLAKY),
        doomed(run.stack, "supervisor", point, passing) as processes,
    ):
        yield
        wait_for_crash(processes, point)


@recipe
def crash_operation(run: Running, *, point: str, passing: int = 1) -> Iterator[None]:
    """Kill the housekeeper during a bulk operation, which resubmits every order exactly once."""
    with scripted(run.stack, {"partner": "shipping", "action": "book", "fault": "reject"}):
        yield
        wait_for(lambda: run.stack.count(IN_ERROR, run.orders) == len(run.orders), "all fail", 90)
    operation = int(run.stack.python("drill.operator", "resubmit", *run.orders))
    with doomed(run.stack, "housekeeper", point, passing) as processes:
        wait_for_crash(processes, point, 40)
    run.quiet()
    counts = wait_for(
        lambda: run.stack.sql(ENDED, operation), "the operation has ended", 20, pause=0.2
    )
    assert counts == [(len(run.orders), 0)], f"fixed, not fixed: {counts}"
    twice = run.stack.count(RESUBMITTED_TWICE, run.orders)
    assert not twice, f"{twice} orders were resubmitted twice"


@recipe
def crash_web(run: Running, *, passing: int = 2, customers: int = 6) -> Iterator[None]:
    """Kill the web process after it committed an order; the customer sends the page again."""
    point = "web.after_commit_before_ring"
    with run.stack.replaced("web", CRASH_AT=f"{point}:{passing}"):
        shoppers = [Shopper(run.stack.port) for _ in range(customers)]
        run.orders += [shopper.buy() for shopper in shoppers]
        yield
        broken = sum(shopper.broken for shopper in shoppers)
        assert broken, "no customer's connection broke"


@recipe
def kill(run: Running, *, processes: list[str], busy: str = "", times: int = 1) -> Iterator[None]:
    """Kill processes one after the other; with `busy`, each while that agent has a call in flight."""
    for _ in range(times):
        for name in processes:
            if busy:
                # more are never in flight where another fault has opened the breaker
                wait_for(
                    lambda: run.stack.count(BUSY, busy) > 0, f"{busy} has a call in flight", 20
                )
            for process in processes_named(resolve(run.stack, name)):
                run.stack.kill(process)
    yield


@recipe
def poison(run: Running, *, process: str, agent: str) -> Iterator[None]:
    """One order kills the agent's worker at each attempt; only that order ends in error."""
    (before,) = run.stack.sql(READ_THRESHOLDS, agent)
    # the product's defaults: waits that grow, so that other orders pass the bad one
    run.stack.sql(SET_THRESHOLDS, 5, 1, 60, agent)
    stop = threading.Event()
    try:
        with run.stack.stopped(process):
            yield
            bad = run.orders[len(run.orders) // 2]
            restarting = [
                threading.Thread(target=_restart, args=(run.stack, name, bad, stop))
                for name in processes_named(process)
            ]
            for thread in restarting:
                thread.start()
            try:
                wait_for(
                    lambda: run.stack.count(IN_ERROR, [bad]), "the order is in error", 90, pause=0.2
                )
            finally:
                stop.set()
                for thread in restarting:
                    thread.join(30)
            others = run.stack.count(IN_ERROR, run.orders) - 1
            assert not others, f"{others} other orders ended in error with it"
    finally:
        run.stack.sql(SET_THRESHOLDS, *before, agent)


def _restart(stack: Stack, name: str, order: str, stop: threading.Event) -> None:
    """Start the process again each time it ends, as a process manager does, until `stop` is set."""
    while not stop.is_set():
        process = stack.beside(name, CRASH_AT=f"agent.before_call:1:{order}")
        while process.poll() is None and not stop.wait(0.1):
            pass
        process.end()
