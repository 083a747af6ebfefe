"""What the partners were asked and did in the last minutes; it begins anew with the process."""

import time
from collections import deque
from typing import NamedTuple

SPAN = 10  # seconds of one bar
BARS = 30


class Bar(NamedTuple):
    """Counts of one span: requests, effects they had, requests that met a fault."""

    requests: int = 0
    effects: int = 0
    hit: int = 0


EMPTY = Bar()


class Traffic:
    """The last bars of one partner."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._bars: deque[tuple[int, Bar]] = deque(maxlen=BARS)

    def count(self, *, requests: int = 0, effects: int = 0, hit: int = 0) -> None:
        """Add to the present bar."""
        now = int(time.monotonic()) // SPAN
        span, bar = self._bars.pop() if self._bars and self._bars[-1][0] == now else (now, EMPTY)
        added = Bar(bar.requests + requests, bar.effects + effects, bar.hit + hit)
        self._bars.append((span, added))

    def bars(self) -> list[Bar]:
        """Return the last bars, oldest first; empty ones where nothing came."""
        now = int(time.monotonic()) // SPAN
        known = dict(self._bars)
        return [known.get(span, EMPTY) for span in range(now - BARS + 1, now + 1)]

    def total(self) -> Bar:
        """Return the sums of the last bars."""
        return Bar(*map(sum, zip(*self.bars(), strict=True)))
