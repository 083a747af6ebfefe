"""What has been there for a while, as far as one process has looked."""

import time
from collections.abc import Iterable


class Lasting:
    """Which of the things seen have been there for a while, as far as this process has looked.

    A process that is replaced is gone for a moment, and one that has just started has yet to hear
    of the others: neither is worth waking anybody.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def of(self, seen: Iterable[str], patience: float) -> set[str]:
        """Return those of `seen` that have been seen each time for at least `patience` seconds."""
        now = time.monotonic()
        self._since = {one: self._since.get(one, now) for one in seen}
        return {one for one, since in self._since.items() if now - since >= patience}
