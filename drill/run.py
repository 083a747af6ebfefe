"""One mode, or a pair of them, on a running stack: orders, fault, healing, quiet, verdict."""

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import psycopg2  # type: ignore[import-untyped]

from drill import recipes
from drill.stack import SLOWEST, Stack
from drill.table import Mode
from drill.verdict import Verdict, verdict
from drill.waiting import let_pass, wait_for

USUAL = 200  # orders in flight when the fault strikes
SPARE = 0.2  # the share in flight beyond those, as some are done before it strikes
# seconds after healing within which everything must have come to its end, but for a long backlog
PATIENCE = 150

# Short patience, narrow windows: faults strike while orders are in flight, and are seen soon.
POLICY = {
    "time_allowed": 3, "call_timeout": 1, "tries": 2, "failure_threshold": 30, "backoff": 0.3,
    "backoff_cap": 1, "window": 10,
    "undo_threshold": 60, "breaker_pause": 0.5, "breaker_pause_cap": 2,
}  # fmt: skip
LATENCY = 0.1  # seconds that a partner takes
PAIR = " + "  # between the names of two modes that are drilled together

OPEN = """
SELECT (SELECT count(*) FROM orchestration_submission WHERE reference = ANY(%(orders)s)
            AND refused_at IS NULL)
     + (SELECT count(*) FROM orchestration_task WHERE reference = ANY(%(orders)s)
            AND state IN ('pending', 'processing', 'undoing'))
     + (SELECT count(*) FROM orchestration_statusmessage m JOIN orchestration_task t
            ON t.id = m.task_id WHERE t.reference = ANY(%(orders)s) AND m.refused_at IS NULL)
"""
RETRIES = """
SELECT coalesce(sum(greatest(s.attempt - 1, 0)), 0) FROM orchestration_step s
JOIN orchestration_task t ON t.id = s.task_id WHERE t.reference = ANY(%s)
"""
# the first that the engine wrote down of anything unusual: an attempt that failed or expired, a
# reply refused, an alert, a new reign
NOTICED = """
SELECT extract(epoch FROM min(at) - %(since)s)::float8 FROM (
    SELECT min(ended_at) AS at FROM orchestration_attempt
        WHERE outcome <> 'done' AND ended_at > %(since)s
    UNION ALL SELECT min(at) FROM orchestration_event WHERE at > %(since)s
    UNION ALL SELECT min(first_seen) FROM orchestration_alert WHERE first_seen > %(since)s
) AS found
"""


@dataclass(kw_only=True)
class Result:
    """What one drill found; times in seconds, None where there was nothing to notice or mend."""

    mode: str
    family: str
    orders: int
    retries: int = 0
    detected: float | None = None
    recovered: float | None = None
    verdict: Verdict = field(default_factory=Verdict)
    took: float = 0.0


class Run:
    """The orders of one drill."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.orders: list[str] = []

    def place(
        self, count: int, *, card: str = "pm_card_visa", flying: int = 0, **environment: str
    ) -> list[str]:
        """Place orders that belong to this run; return their ids."""
        placed = self.stack.place(count, card=card, flying=flying, **environment)
        self.orders += placed
        return placed

    def open(self) -> int:
        """Return how many orders, or messages about them, have not come to their end."""
        connection = self.stack.connect()
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(OPEN, {"orders": self.orders})
                return int(cursor.fetchone()[0])
        finally:
            connection.close()

    def quiet(self, seconds: float = PATIENCE) -> None:
        """Wait until every order of this run has come to its end, and the shop knows."""
        seconds += len(self.orders) / SLOWEST
        pause = max(0.2, len(self.orders) / 20_000)  # to look at a great many takes a while

        def settled() -> bool:
            try:
                return self.open() == 0
            except psycopg2.Error:
                return False

        wait_for(settled, "every order has come to its end", seconds, pause=pause)


def prepare(stack: Stack) -> None:
    """Make a stack fit for drills."""
    stack.policy(**POLICY)
    stack.sandbox("/faults", {"faults": [], "latency": {"*": LATENCY}}, "PUT")
    stock = dict.fromkeys(stack.sandbox("/inventory/stock"), 10_000_000)  # more than all will buy
    stack.sandbox("/inventory/stock", stock, "PUT")


def drill(stack: Stack, modes: Sequence[Mode]) -> Result:
    """Apply one mode, or several at once, and judge; whatever goes wrong is in the verdict."""
    result = Result(mode=PAIR.join(mode.id for mode in modes), family=modes[0].family, orders=0)
    run = Run(stack)
    started = time.monotonic()
    try:
        _strike(run, modes, result)
    except Exception as error:  # noqa: BLE001 - a drill that breaks is a bad verdict, not the end
        result.verdict.troubles.append(f"{type(error).__name__}: {error}")
        with suppress(AssertionError):  # judge the orders all the same, once they have settled
            run.quiet(60)
    result.orders = len(run.orders)
    try:
        ends = modes[0].ends if len(modes) == 1 else "settled"
        found = verdict(stack, run.orders, ends)
        found.troubles = result.verdict.troubles + found.troubles
        result.verdict = found
        result.retries = stack.count(RETRIES, run.orders)
    except Exception as error:  # noqa: BLE001 - the same
        result.verdict.troubles.append(f"no verdict: {type(error).__name__}: {error}")
    result.took = time.monotonic() - started
    return result


def _strike(run: Run, modes: Sequence[Mode], result: Result) -> None:
    stack = run.stack
    in_flight = max(mode.orders or USUAL for mode in modes)
    with ExitStack() as faults:
        ((since,),) = stack.sql("SELECT clock_timestamp()")
        for mode in modes:
            if mode.first:
                faults.enter_context(recipes.apply(mode.recipe, run, mode.given))
        wanted = int(in_flight * (1 + SPARE))
        run.place(wanted, flying=wanted)
        flying = run.open()  # all were in flight a moment ago, but some machines are slow to say so
        assert flying >= in_flight / 2, f"only {flying} orders are in flight"
        # who is to die has to work for that: a crash comes first, and is left once the others healed
        for mode in sorted(modes, key=lambda mode: mode.recipe != "crash"):
            if not mode.first:
                ((since,),) = stack.sql("SELECT clock_timestamp()")
                faults.enter_context(recipes.apply(mode.recipe, run, mode.given))
        let_pass(max(mode.seconds for mode in modes))
    healed = time.monotonic()
    run.quiet()
    result.recovered = time.monotonic() - healed
    connection = stack.connect()
    with connection, connection.cursor() as cursor:
        cursor.execute(NOTICED, {"since": since})
        result.detected = cursor.fetchone()[0]
    connection.close()
