"""The choices of a run: drawn by a seed, or taken from a list."""

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")
# Of runs: the weight of each. One without a weight is drawn by no seed: `--kind` names it.
KINDS = {
    "usual": 4.0,
    "posted again": 1.0,
    "mended late": 3.0,
    "amended": 0.0,
    "children": 0.0,
    "undone in part": 0.0,
}


class Choices:
    """Small numbers, in the order in which a run asks for them; `made` are those so far.

    0 is the plainest choice everywhere: no switch, no fault, the fewest tasks. A replay goes on with it
    where its list ends, so that a list with fewer and smaller numbers is a plainer run.
    """

    def __init__(self, seed: int, replay: Sequence[int] | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a test's choices
        self._replay = replay
        self.made: list[int] = []

    def below(self, count: int) -> int:
        """Return a number from 0 on, below `count`."""
        return self._keep(self._random.randrange(count), count)

    def chance(self, share: float) -> bool:
        """Return True in a share (0 to 1) of the cases."""
        return bool(self._keep(int(self._random.random() < share), 2))

    def weighted(self, weights: Sequence[float]) -> int:
        """Return the place of one of the weights, by its share of their sum."""
        left = self._random.random() * sum(weights)
        for place, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return self._keep(place, len(weights))
        return self._keep(0, len(weights))

    def pick(self, items: Sequence[Item]) -> Item:
        """Return a random item."""
        return items[self.below(len(items))]

    def of(self, weights: dict[Item, float]) -> Item:
        """Return one of the keys, by the weights."""
        return list(weights)[self.weighted(list(weights.values()))]

    def _keep(self, drawn: int, count: int) -> int:
        if self._replay is not None:
            at = len(self.made)
            drawn = min(self._replay[at], count - 1) if at < len(self._replay) else 0
        self.made.append(drawn)
        return drawn
