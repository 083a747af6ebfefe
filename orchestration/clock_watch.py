"""Notices that the database's clock jumped, by a clock that no one sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from . import clock, conf

LONGEST = 3600.0  # seconds: in a longer time clocks drift apart without a jump


@cache
def _boot() -> str:
    """Return the id of this machine's present run, for which its steady clock holds; empty if unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The database's Unix time, as a statement saw it between two moments of the steady clock.

    `handled` is the sum of the jumps that the supervisors have dealt with, in seconds.
    """

    now: float
    handled: float
    before: float
    after: float

    @property
    def lead(self) -> tuple[float, float]:
        """Return what the clock leads the steady one by, jumps that are handled aside: least, most."""
        shown = self.now - self.handled
        return shown - self.after, shown - self.before


class ClockWatch:
    """Compares how far the database's clock went with this process's steady clock.

    `jump` is by how many seconds the database's clock is off and no supervisor has dealt with it;
    positive when it went forward, 0.0 when all is well. It jumped at most `since` seconds ago.
    """

    def __init__(self) -> None:
        self.jump = 0.0
        self.handled = 0.0  # of the last reading, to be compared again under a lock
        self.since = 0.0
        self._base: tuple[float, float] | None = None  # its lead, at least and at most
        self._right_at = 0.0  # steady time when all was well last
        self._seen_at = 0.0  # steady time when the jump was seen first

    def dump(self) -> dict[str, Any]:
        """Return what another process on this machine must know to go on comparing."""
        return {"boot": _boot(), "base": self._base, "right_at": self._right_at}

    @classmethod
    def load(cls, left: Mapping[str, Any] | None) -> "ClockWatch":
        """Return the watch of another process, if its steady clock is this one's and it was lately."""
        loaded = cls()
        if not left or not left["base"] or left["boot"] != _boot():
            return loaded
        if _boot() and 0 <= clock.steady() - left["right_at"] <= LONGEST:
            low, high = left["base"]
            loaded._base, loaded._right_at = (low, high), left["right_at"]
        return loaded

    def see(self, reading: Reading, *, leading: bool) -> None:
        """Take in a reading; `leading` says whether this process is the one to deal with a jump.

        Each reading narrows what the clock's lead can be. A small deviation is drift, and forgotten.
        A jump that the leader does not deal with in good time is not one: this process stood still,
        say with its virtual machine.
        """
        self.handled = reading.handled
        lead = reading.lead
        jump = self._deviation(lead)
        if abs(jump) <= conf.CLOCK_JUMP:
            jump = 0.0
        elif not self.jump:
            self._seen_at = reading.after
        ours = leading or reading.after - self._seen_at <= 2 * conf.LEASE
        self.jump = jump if ours else 0.0
        self.since = reading.after - self._right_at
        if not self.jump and reading.after - reading.before <= conf.CLOCK_JUMP:
            low, high = self._base if self._base and not self._deviation(lead) else lead
            self._base = max(low, lead[0]), min(high, lead[1])
            self._right_at = reading.before

    def _deviation(self, lead: tuple[float, float]) -> float:
        """Return the least deviation from the base that the lengths of the round trips leave."""
        low, high = self._base or lead
        return max(lead[0] - high, 0.0) + min(lead[1] - low, 0.0)
