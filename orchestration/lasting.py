"""What one process keeps in mind for a while: what it has seen, and what it leaves alone."""

import time
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


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

    def dump(self) -> dict[str, float]:
        """Return since when each has been seen, in Unix time, for another process."""
        ahead = time.time() - time.monotonic()
        return {one: since + ahead for one, since in self._since.items()}

    @classmethod
    def load(cls, seen: Mapping[str, float]) -> "Lasting":
        """Return what another process has seen, as if this one had."""
        ahead = time.time() - time.monotonic()
        loaded = cls()
        loaded._since = {one: since - ahead for one, since in seen.items()}
        return loaded


class Pauses(dict[Key, float]):
    """What this process leaves alone for now: until when, on a steady clock."""

    def begin(self, one: Key, seconds: float) -> None:
        """Leave one alone for so long from now on."""
        self[one] = time.monotonic() + seconds

    def of(self, one: Key) -> bool:
        """Return whether one is left alone at this moment."""
        return self.get(one, 0.0) > time.monotonic()
