"""Customers of the demo: a switch on the page, which a program of the shop looks at and obeys.

Nothing of it is kept: whoever starts the sandbox again starts without customers.
"""

import time
from collections.abc import Mapping

from sandbox.refusals import bad_field

# orders a second, by what is sent; and as the page calls them
RATES: Mapping[str, str] = {
    "0": "None",
    "0.2": "One in 5 s",
    "1": "1 a second",
    "5": "5 a second",
    "20": "20 a second",
}
PATIENCE = 10.0  # seconds after which a program that did not ask again has ended


class Demand:
    """How many orders are wanted, and what the program that places them told last."""

    def __init__(self) -> None:
        """Start with no customers, and nobody who would send some."""
        self.wanted = "0"
        self.placed = 0
        self._asked_at: float | None = None

    @property
    def followed(self) -> bool:
        """Whether a program obeys: without one, a switch would switch nothing."""
        return self._asked_at is not None and time.monotonic() - self._asked_at < PATIENCE

    def ask(self, told: object) -> float:
        """Return the orders a second that are wanted; `told` is what the program says of itself."""
        placed = told.get("placed") if isinstance(told, dict) else None
        if not isinstance(placed, int) or isinstance(placed, bool) or placed < 0:
            raise bad_field(
                "placed", "Send an object that says how many were placed: {'placed': 0}."
            )
        self.placed, self._asked_at = placed, time.monotonic()
        return float(self.wanted)
