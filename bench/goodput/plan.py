"""The amounts of a measurement, and its lanes. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.goodput.verdict import OFTEN

RATES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5)
WITH, WITHOUT, LONG = "with", "without", "long"  # a breaker; or with one during a long outage
BESIDE, BESIDE_RATE = "beside", 10.0  # the lane of another agent; its tasks per second

WINDOW = 100
# Tries and time-outs like the engine's defaults. No task may end in error by chance, and no step may
# wait longer than a measurement.
POLICY: Mapping[str, Any] = {
    "window": WINDOW,
    "time_allowed": 10.0,
    "call_timeout": 2.0,
    "tries": 2,
    "failure_threshold": 1000,
    "undo_threshold": 1000,
    "backoff": 1.0,
    "backoff_cap": 10.0,
}


@dataclass(frozen=True, kw_only=True)
class GoodputPlan:
    """The amounts of a measurement; times in seconds."""

    rates: Sequence[float] = RATES
    tasks: int = 2_000
    short_outage: float = 60.0
    long_outage: float = 300.0
    until_counted: float = 30.0  # from the beginning of a long outage, when its breaker is open
    open_loop: float = 60.0
    load: float = 0.6  # share of the service's capacity
    apart: float = 30.0  # between the beginnings of long outages

    @property
    def often(self) -> list[float]:
        """Return the failure rates at which long outages are measured."""
        return [failing for failing in self.rates if failing <= OFTEN]

    def patience(self, good: float, tasks: int) -> float:
        """Return the time limit of a run, in seconds; `good` is the share of good calls."""
        return 60.0 + 3 * tasks / (WINDOW * good)

    def policies(self) -> dict[str, dict[str, Any]]:
        """Return the required lanes and their policies."""
        policies = {BESIDE: dict(POLICY)}
        for failing in self.rates:
            policies[lane(failing)] = dict(POLICY)
            policies[lane(failing, WITHOUT)] = dict(POLICY)
        return policies | {lane(failing, LONG): dict(POLICY) for failing in self.often}


def lane(failing: float, kind: str = WITH) -> str:
    """Return the name of a lane: one for each failure rate and kind."""
    return f"{kind}{failing * 100:g}".replace(".", "_")
