"""Notices that the database's clock jumped, by a clock that no one sets."""

from dataclasses import dataclass

from . import conf

QUICK = 1.0  # seconds; a statement that took longer says too little about the clock to start from


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The database's Unix time, as a statement saw it between two moments of the steady clock.

    `handled` is the sum of the jumps that the supervisors have dealt with, in seconds.
    """

    now: float
    handled: float
    before: float
    after: float


class ClockWatch:
    """Compares how far the database's clock went with this process's steady clock.

    `jump` is by how many seconds the database's clock is off and no supervisor has dealt with it;
    positive when it went forward, 0.0 when all is well. It jumped at most `since` seconds ago.
    """

    def __init__(self) -> None:
        self.jump = 0.0
        self.handled = 0.0  # of the last reading, to be compared again under a lock
        self.since = 0.0
        self._base: float | None = None
        self._right_at = 0.0  # steady time when all was well last
        self._seen_at = 0.0  # steady time when the jump was seen first

    def see(self, reading: Reading, *, leading: bool) -> None:
        """Take in a reading; `leading` says whether this process is the one to deal with a jump.

        A small deviation is drift, and forgotten. A jump that the leader does not deal with in
        good time is not one: this process stood still, say with its virtual machine.
        """
        self.handled = reading.handled
        jump = self._deviation(reading)
        if abs(jump) <= conf.CLOCK_JUMP:
            jump = 0.0
        elif not self.jump:
            self._seen_at = reading.after
        ours = leading or reading.after - self._seen_at <= 2 * conf.LEASE
        self.jump = jump if ours else 0.0
        self.since = reading.after - self._right_at
        if not self.jump and reading.after - reading.before <= QUICK:
            self._base = reading.now - reading.after - reading.handled
            self._right_at = reading.before

    def _deviation(self, reading: Reading) -> float:
        """Return the least deviation from the base that the length of the round trip leaves."""
        if self._base is None:
            return 0.0
        least = reading.now - reading.after - reading.handled - self._base
        most = reading.now - reading.before - reading.handled - self._base
        return least if least > 0 else min(most, 0.0)
