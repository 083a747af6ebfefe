"""Detect jumps of the database's clock by comparing it with a steady clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .. import conf
from . import clock

LONGEST = 3600.0  # seconds; over a longer time clocks drift apart without a jump


@cache
def _boot() -> str:
    """Return the id of this machine's boot, the scope of its steady clock; empty if unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The database's Unix time, read between two moments of the steady clock.

    `handled` is the sum of the jumps that supervisors have handled, in seconds.
    """

    now: float
    handled: float
    before: float
    after: float

    @property
    def lead(self) -> tuple[float, float]:
        """Return the minimum and maximum lead over the steady clock, without handled jumps."""
        shown = self.now - self.handled
        return shown - self.after, shown - self.before


class ClockWatch:
    """Compares the progress of the database's clock with this process's steady clock.

    `jump` is the jump in seconds that no supervisor has handled yet; positive if the clock went forward,
    0.0 if there was none. It happened at most `since` seconds ago.
    """

    def __init__(self) -> None:
        self.jump = 0.0
        self.handled = 0.0  # of the last reading; compared again under a lock
        self.since = 0.0
        self._base: tuple[float, float] | None = None  # minimum and maximum lead
        self._right_at = 0.0  # steady time of the last reading without a jump
        self._seen_at = 0.0  # steady time when the jump was first seen

    def dump(self) -> dict[str, Any]:
        """Return the state that another process on this machine needs to continue."""
        return {"boot": _boot(), "base": self._base, "right_at": self._right_at}

    @classmethod
    def load(cls, left: Mapping[str, Any] | None) -> "ClockWatch":
        """Return the dumped watch, if it is recent and of the same boot; otherwise a new one."""
        loaded = cls()
        if not left or not left["base"] or left["boot"] != _boot():
            return loaded
        if _boot() and 0 <= clock.steady() - left["right_at"] <= LONGEST:
            low, high = left["base"]
            loaded._base, loaded._right_at = (low, high), left["right_at"]
        return loaded

    def see(self, reading: Reading, *, leading: bool) -> None:
        """Process a reading; `leading`: this process is the one that handles jumps.

        Each reading narrows the range of the clock's lead. A small deviation is drift, and ignored: less
        of it if the clock went back, as then it showed times twice. A jump that the leader does not
        handle in time is not a jump: this process was suspended, for example with its virtual machine.
        """
        self.handled = reading.handled
        lead = reading.lead
        jump = self._deviation(lead)
        if -conf.CLOCK_BACK_S <= jump <= conf.CLOCK_JUMP_S:
            jump = 0.0
        elif not self.jump:
            self._seen_at = reading.after
        led = leading or reading.after - self._seen_at <= 2 * conf.LEASE_S
        self.jump = jump if led else 0.0
        self.since = reading.after - self._right_at
        if not self.jump and reading.after - reading.before <= conf.CLOCK_JUMP_S:
            low, high = self._base if self._base and not self._deviation(lead) else lead
            self._base = max(low, lead[0]), min(high, lead[1])
            self._right_at = reading.before

    def _deviation(self, lead: tuple[float, float]) -> float:
        """Return the minimum deviation from the base, given the lengths of the round trips."""
        low, high = self._base or lead
        return max(lead[0] - high, 0.0) + min(lead[1] - low, 0.0)
