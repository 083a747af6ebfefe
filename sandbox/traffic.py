"""Counts of the last minutes' requests per partner, in memory only."""

import time
from collections import deque
from dataclasses import astuple, dataclass

SPAN = 10  # seconds of one bar
BARS = 30


@dataclass(slots=True)
class Bar:
    """Counts of one span: requests, effects, and requests that met a fault."""

    requests: int = 0
    effects: int = 0
    hit: int = 0


class Traffic:
    """The last bars of one partner."""

    def __init__(self) -> None:
        """Start without bars."""
        self._bars: deque[tuple[int, Bar]] = deque(maxlen=BARS)

    def current(self) -> Bar:
        """Return the bar of the current span, to add to its counts."""
        span = int(time.monotonic()) // SPAN
        if not self._bars or self._bars[-1][0] != span:
            self._bars.append((span, Bar()))
        return self._bars[-1][1]

    def bars(self) -> list[Bar]:
        """Return the last bars, oldest first, with empty ones for spans without requests."""
        now = int(time.monotonic()) // SPAN
        known = dict(self._bars)
        return [known.get(span) or Bar() for span in range(now - BARS + 1, now + 1)]

    def total(self) -> Bar:
        """Return the sums of the last bars."""
        return Bar(*map(sum, zip(*map(astuple, self.bars()), strict=True)))
