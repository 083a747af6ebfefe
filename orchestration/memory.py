"""What a leader keeps in mind from one sweep to the next."""

import time
from dataclasses import dataclass, field

from . import conf
from .lasting import Lasting
from .losses import Losses


@dataclass(kw_only=True)
class Memory:
    """What a leader keeps in mind: what it has seen since when, losses, and its chores."""

    absent: Lasting = field(default_factory=Lasting)  # queues without a worker
    blocking: Lasting = field(default_factory=Lasting)  # sessions with locks of ours
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
