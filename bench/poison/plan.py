"""The numbers of poison and of good tasks, and the lanes. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.poison.verdict import WITHIN

KINDS = ("forbidden", "raises", "kills", "blocks")
COUNTS = (2, 10, 50)
HEALTHY = "healthy"  # the lane of the load without poison
# A silent attempt (of a dead or hanging worker) expires after 3 s; the rest are defaults.
POLICY: Mapping[str, Any] = {"window": 20, "time_allowed": 3.0, "call_timeout": 2.0, "tries": 1}


@dataclass(frozen=True, kw_only=True)
class PoisonPlan:
    """The amounts of a measurement; times in seconds."""

    kinds: Sequence[str] = KINDS
    counts: Sequence[int] = COUNTS
    good: int = 500
    latency: float = 0.5
    within: float = WITHIN

    def policies(self) -> dict[str, dict[str, Any]]:
        """Return the required lanes and their policies."""
        names = [lane(kind, count) for kind in self.kinds for count in self.counts]
        return {name: dict(POLICY) for name in (HEALTHY, *names)}


def lane(kind: str, count: int) -> str:
    """Return the name of a lane; each load has its own, since its poison may stay."""
    return f"{kind}{count}"
