"""Debounce conditions, and pause keys, in the memory of one process."""

import time
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self, TypeVar

from ..database import clock

Key = TypeVar("Key", bound=Hashable)


class Debounce:
    """Reports a key only after it has been seen for a while without a gap.

    A process that is replaced is absent for a moment, and a process that has just started has not seen
    the others yet. Neither is worth an alert.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def persisting(self, seen: Iterable[str], patience: float) -> set[str]:
        """Return the keys that were in every `seen` for at least `patience` seconds."""
        now = clock.steady()
        self._since = {key: self._since.get(key, now) for key in seen}
        return {key for key, since in self._since.items() if now - since >= patience}

    def dump(self) -> dict[str, float]:
        """Return since when each key has been seen, in Unix time, for another process."""
        ahead = time.time() - clock.steady()
        return {key: since + ahead for key, since in self._since.items()}

    @classmethod
    def load(cls, seen: Mapping[str, float]) -> Self:
        """Return the state that another process dumped."""
        ahead = time.time() - clock.steady()
        loaded = cls()
        loaded._since = {key: since - ahead for key, since in seen.items()}
        return loaded


class Pauses(dict[Key, float]):
    """Paused keys, each with the end of its pause on the steady clock."""

    def __init__(self) -> None:
        super().__init__()
        _all.append(self)

    @staticmethod
    def end_all() -> None:
        """End all pauses of this process."""
        for pauses in _all:
            pauses.clear()

    def begin(self, key: Key, seconds: float) -> None:
        """Pause a key for `seconds` from now."""
        self[key] = clock.steady() + seconds

    def of(self, key: Key) -> bool:
        """Return whether a key is paused now."""
        return self.left(key) > 0

    def left(self, key: Key) -> float:
        """Return the seconds for which a key is paused still; 0 if it is not."""
        return max(0.0, self.get(key, 0.0) - clock.steady())


_all: list[Pauses[Any]] = []  # made by modules, each once
