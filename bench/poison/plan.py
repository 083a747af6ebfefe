"""How much poison among how much good, and the lanes for it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.poison.verdict import WITHIN

KINDS = ("forbidden", "raises", "kills", "blocks")
COUNTS = (2, 10, 50)
HEALTHY = "healthy"  # the lane of the load without poison
# A silent attempt (a worker that died or hangs) is given up after 3 s; all else is as it comes.
POLICY: Mapping[str, Any] = {"window": 20, "time_allowed": 3.0, "call_timeout": 2.0, "tries": 1}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything; times in seconds."""

    kinds: Sequence[str] = KINDS
    counts: Sequence[int] = COUNTS
    good: int = 500
    latency: float = 0.5
    within: float = WITHIN

    def policies(self) -> dict[str, dict[str, Any]]:
        """Return the lanes that it needs, and their policies."""
        names = [lane(kind, count) for kind in self.kinds for count in self.counts]
        return {name: dict(POLICY) for name in (HEALTHY, *names)}


def lane(kind: str, count: int) -> str:
    """Return the name of a lane: each load has one, as its poison may stay."""
    return f"{kind}{count}"
