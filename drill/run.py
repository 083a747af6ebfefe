"""One drill on a running stack: place orders, apply the faults, heal, wait, judge."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import psycopg2  # type: ignore[import-untyped]

from drill import recipes
from drill.modes_table import Mode
from drill.process import Process
from drill.stack import SLOWEST, Stack
from drill.verdict import Verdict, verdict
from drill.waiting import pause, wait_for

USUAL = 200  # orders in flight when the fault strikes
SPARE = 0.2  # the share placed beyond those, as some end before it strikes
PATIENCE = 150  # seconds after healing within which all orders must have ended, without a backlog

# Short deadlines and narrow windows: faults meet orders in flight and are detected soon.
POLICY = {
    "time_allowed": 3, "call_timeout": 1, "tries": 2, "failure_threshold": 30, "backoff": 0.3,
    "backoff_cap": 1, "window": 10,
    "undo_threshold": 60, "breaker_pause": 0.5, "breaker_pause_cap": 2,
}  # fmt: skip
LATENCY = 0.1  # seconds of a partner's answer
PAIR = " + "  # between the names of two modes in one drill

OPEN = """
SELECT (SELECT count(*) FROM orchestration_submission WHERE reference = ANY(%s)
            AND refused_at IS NULL)
     + (SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s)
            AND state IN ('pending', 'processing', 'undoing'))
     + (SELECT count(*) FROM orchestration_statusmessage m JOIN orchestration_task t
            ON t.id = m.task_id WHERE t.reference = ANY(%s) AND m.refused_at IS NULL)
"""
RETRIES = """
SELECT coalesce(sum(greatest(s.attempt - 1, 0)), 0) FROM orchestration_step s
JOIN orchestration_task t ON t.id = s.task_id WHERE t.reference = ANY(%s)
"""
# the first unusual record: a failed or expired attempt, a refused reply, an alert, a new leader
DETECTED = """
SELECT extract(epoch FROM min(at) - %s)::float8 FROM (
    SELECT min(ended_at) AS at FROM orchestration_attempt
        WHERE outcome <> 'done' AND ended_at > %s
    UNION ALL SELECT min(at) FROM orchestration_event WHERE at > %s
    UNION ALL SELECT min(first_seen) FROM orchestration_alert WHERE first_seen > %s
) AS found
"""


# how long no task ended, at most, between two times
GAP = """
SELECT extract(epoch FROM max(at - before))::float8 FROM (
    SELECT at, lag(at) OVER (ORDER BY at) AS before FROM (
        SELECT ended_at AS at FROM orchestration_task
            WHERE reference = ANY(%s) AND ended_at BETWEEN %s AND %s
        UNION ALL SELECT unnest(ARRAY[%s, %s]::timestamptz[])
    ) AS ends
) AS gaps
"""
ENDED_SINCE = """
SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s) AND ended_at > %s
"""
EVERY = 0.4  # seconds between two orders of the traffic during a fault
FLOWING = 5  # orders that are accepted, and that end, after a fault: work flows again


@dataclass(kw_only=True)
class Result:
    """The result of one drill; times in seconds, None if nothing was detected.

    `gap` is for how long no order ended around the fault, at most, though orders went on coming.
    """

    mode: str
    family: str
    orders: int
    retries: int = 0
    detected: float | None = None
    recovered: float | None = None
    gap: float | None = None
    verdict: Verdict = field(default_factory=Verdict)
    took: float = 0.0


class Run:
    """The orders of one drill."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.orders: list[str] = []

    def place(
        self,
        count: int,
        *,
        card: str = "pm_card_visa",
        also: str = "",
        country: str = "",
        flying: int = 0,
        tree: Path | None = None,
        **environment: str,
    ) -> list[str]:
        """Place orders that belong to this run; return their ids."""
        placed = self.stack.place(
            count, card=card, also=also, country=country, flying=flying, tree=tree, **environment
        )
        self.orders += placed
        return placed

    def open(self) -> int:
        """Return the number of orders, and of messages about them, that have not ended."""
        return self.stack.count(OPEN, *[self.orders] * 3)

    def retries(self) -> int:
        """Return the number of attempts beyond the first of each step of these orders."""
        return self.stack.count(RETRIES, self.orders)

    @contextmanager
    def traffic(self) -> Iterator[Callable[[], list[str]]]:
        """Keep placing orders; yield a function that returns the accepted ones."""
        file = self.stack.folder / "traffic"
        file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "drill.place_orders", "1", "--every", str(EVERY)]
        with file.open("wb") as output, self.stack.log.open("ab") as log:
            placing = Process(
                command, self.stack.log, env=self.stack.inside(), stdout=output, stderr=log
            )

        def accepted() -> list[str]:
            return [line.strip() for line in file.read_text().splitlines(True) if line[-1] == "\n"]

        try:
            wait_for(accepted, "an order was placed", 60)
            yield accepted
        finally:
            placing.end()
            self.orders += accepted()

    def quiet(self, seconds: float = PATIENCE) -> None:
        """Wait until every order of this run has ended and its messages are sent."""
        seconds += len(self.orders) / SLOWEST
        pause = max(0.2, len(self.orders) / 20_000)  # counting many orders is slow

        def settled() -> bool:
            try:
                return self.open() == 0
            except psycopg2.Error:
                return False

        wait_for(settled, "every order has ended", seconds, pause=pause)


def prepare(stack: Stack) -> None:
    """Prepare a stack for drills: policies, latency, stock."""
    stack.policy(**POLICY)
    stack.sandbox("/faults", {"faults": [], "latency": {"*": LATENCY}}, "PUT")
    stock = dict.fromkeys(
        stack.sandbox("/inventory/stock"), 10_000_000
    )  # more than all drills need
    stack.sandbox("/inventory/stock", stock, "PUT")


def drill(stack: Stack, modes: Sequence[Mode], *, settle: float = 60) -> Result:
    """Apply one mode, or several at once; the verdict includes exceptions of the drill.

    After an exception the orders have at least `settle` seconds to end before the verdict.
    """
    result = Result(mode=PAIR.join(mode.id for mode in modes), family=modes[0].family, orders=0)
    run = Run(stack)
    began = time.monotonic()
    try:
        _strike(run, modes, result)
    except Exception as error:  # noqa: BLE001 - a broken drill is a bad verdict
        result.verdict.troubles.append(f"{type(error).__name__}: {error}")
        with suppress(AssertionError):  # judge the orders nevertheless
            run.quiet(settle)
    result.orders = len(run.orders)
    try:
        ends = modes[0].ends if len(modes) == 1 else "settled"
        outcome = verdict(stack, run.orders, ends)
        outcome.troubles = result.verdict.troubles + outcome.troubles
        result.verdict = outcome
        result.retries = run.retries()
    except Exception as error:  # noqa: BLE001 - the same
        result.verdict.troubles.append(f"no verdict: {type(error).__name__}: {error}")
    result.took = time.monotonic() - began
    return result


def _strike(run: Run, modes: Sequence[Mode], result: Result) -> None:
    stack = run.stack
    in_flight = max(mode.orders or USUAL for mode in modes)
    with ExitStack() as faults:
        ((since,),) = stack.sql("SELECT clock_timestamp()")
        for mode in modes:
            if mode.first:
                faults.enter_context(recipes.apply(mode.recipe, run, mode.options))
        if traffic := any(mode.traffic for mode in modes):
            accepted = faults.enter_context(run.traffic())
        count = int(in_flight * (1 + SPARE))
        run.place(count, flying=count)
        flying = run.open()  # all were open a moment ago; this query may be slow
        least = in_flight if traffic else in_flight / 2
        assert flying >= least, f"only {flying} orders are in flight"
        # a crash comes first and ends last: its process must work until it reaches the crash point;
        # so does a process that freezes: it must have steps in hand
        for mode in sorted(modes, key=lambda mode: mode.recipe not in {"crash", "freeze"}):
            if not mode.first:
                ((since,),) = stack.sql("SELECT clock_timestamp()")
                faults.enter_context(recipes.apply(mode.recipe, run, mode.options))
        pause(max(mode.seconds for mode in modes))
        if traffic:
            result.gap = _gap(run, accepted, since)
    healed = time.monotonic()
    run.quiet()
    result.recovered = time.monotonic() - healed
    ((result.detected,),) = stack.sql(DETECTED, *[since] * 4)


def _gap(run: Run, accepted: Callable[[], list[str]], since: datetime) -> float:
    """Wait until orders flow again; return for how long none ended."""
    ((healed,),) = run.stack.sql("SELECT clock_timestamp()")
    before = len(accepted())

    def flows() -> bool:
        placed = accepted()
        ended = run.stack.count(ENDED_SINCE, run.orders + placed, healed)
        return ended >= FLOWING and len(placed) - before >= FLOWING

    wait_for(flows, "orders flow again", 60)
    ((until,),) = run.stack.sql("SELECT clock_timestamp()")
    ((gap,),) = run.stack.sql(GAP, run.orders + accepted(), since, until, since, until)
    return float(gap)
