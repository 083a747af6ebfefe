"""The state of a leader between two sweeps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import conf
from ..cluster.debounce import Debounce
from ..database import clock
from .losses import Losses


@dataclass(kw_only=True)
class Memory:
    """A leader's memory: debounced observations, losses, failing duties, time of the next chores."""

    absent: Debounce = field(default_factory=Debounce)  # queues without a worker
    blocking: Debounce = field(default_factory=Debounce)  # other programs' sessions that hold locks
    silent: Debounce = field(default_factory=Debounce)  # workers that may be dead
    late_audits: Debounce = field(default_factory=Debounce)  # kinds of audit that do not end
    losses: Losses = field(default_factory=Losses)
    chores_at: float = 0.0
    records_at: float = 0.0
    failing: dict[str, Exception] = field(default_factory=dict)  # duties, until they succeed again

    def wants_chores(self) -> bool:
        """Return whether chores are due; if so, start the next interval."""
        now = clock.steady()
        if now < self.chores_at:
            return False
        self.chores_at = now + conf.CHORE_INTERVAL_S
        return True

    def wants_records(self) -> bool:
        """Return whether old rows are to be looked for; if so, start the next interval."""
        now = clock.steady()
        if now < self.records_at:
            return False
        self.records_at = now + conf.RECORDS_INTERVAL_S
        return True

    def dump(self) -> dict[str, Any]:
        """Return the state for the next scheduled sweep, as JSON.

        Silent workers are left out: between two such sweeps the database may have been away, so that no
        worker could report.
        """
        return {
            "absent": self.absent.dump(),
            "blocking": self.blocking.dump(),
            "late_audits": self.late_audits.dump(),
            "losses": self.losses.dump(),
        }

    @classmethod
    def load(cls, left: Mapping[str, Any]) -> "Memory":
        """Return the memory that the previous sweep dumped."""
        return cls(
            absent=Debounce.load(left.get("absent", {})),
            blocking=Debounce.load(left.get("blocking", {})),
            late_audits=Debounce.load(left.get("late_audits", {})),
            losses=Losses.load(left.get("losses")),
        )
