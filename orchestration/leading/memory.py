"""What a leader keeps in mind from one sweep to the next."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import conf
from ..lasting import Lasting
from ..losses import Losses


@dataclass(kw_only=True)
class Memory:
    """What a leader keeps in mind: what it has seen since when, losses, and its chores."""

    absent: Lasting = field(default_factory=Lasting)  # queues without a worker
    blocking: Lasting = field(default_factory=Lasting)  # sessions with locks of ours
    silent: Lasting = field(default_factory=Lasting)  # workers that may be dead
    losses: Losses = field(default_factory=Losses)
    chores_at: float = 0.0
    failing: dict[str, Exception] = field(default_factory=dict)  # duties, since they last were done

    def wants_chores(self) -> bool:
        """Return whether it is time for the chores; the next interval begins now."""
        now = time.monotonic()
        if now < self.chores_at:
            return False
        self.chores_at = now + conf.CHORES
        return True

    def dump(self) -> dict[str, Any]:
        """Return what the next sweep that a schedule starts must know, as JSON.

        Not who may be dead: between two such sweeps the database may have been away, and kept all
        workers from reporting.
        """
        return {
            "absent": self.absent.dump(),
            "blocking": self.blocking.dump(),
            "losses": self.losses.dump(),
        }

    @classmethod
    def load(cls, left: Mapping[str, Any]) -> "Memory":
        """Return the memory of the sweep before, from what it has left behind."""
        return cls(
            absent=Lasting.load(left.get("absent", {})),
            blocking=Lasting.load(left.get("blocking", {})),
            losses=Losses.load(left.get("losses")),
        )
