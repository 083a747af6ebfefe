"""The demo's switch: how many orders per second `manage.py demo_traffic` places.

It is kept in memory only: a restart sets it to none.
"""

import time
from collections.abc import Mapping

from sandbox.refusals import bad_field

# orders per second, as the form sends it: its label on the page
RATES: Mapping[str, str] = {
    "0": "None",
    "0.2": "One in 5 s",
    "1": "1 a second",
    "5": "5 a second",
    "20": "20 a second",
}
CONNECTION_TIMEOUT = 10.0  # seconds without a poll after which the demo counts as ended


class DemoSwitch:
    """The chosen rate, and what the demo reported last."""

    def __init__(self) -> None:
        """Start with the rate none, and no demo connected."""
        self.rate = "0"
        self.placed = 0
        self._polled_at: float | None = None

    @property
    def connected(self) -> bool:
        """Whether a demo polls the switch."""
        now = time.monotonic()
        return self._polled_at is not None and now - self._polled_at < CONNECTION_TIMEOUT

    def poll(self, report: object) -> float:
        """Return the orders per second to place; `report` is {"placed": orders so far}."""
        placed = report.get("placed") if isinstance(report, dict) else None
        if not isinstance(placed, int) or isinstance(placed, bool) or placed < 0:
            raise bad_field(
                "placed", "Send an object with the number of orders placed: {'placed': 0}."
            )
        self.placed, self._polled_at = placed, time.monotonic()
        return float(self.rate)
