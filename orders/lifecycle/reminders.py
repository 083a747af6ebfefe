"""When customers are reminded of a payment that waits for them."""

from dataclasses import dataclass
from datetime import datetime

from orders.cards import CONFIRMED_WITHIN, TRANSFERRED_WITHIN

# The first reminds of nothing: by its message the order's page knows what is reserved, and can be removed.
REMIND_AFTER = [5.0, CONFIRMED_WITHIN * 2 / 3, TRANSFERRED_WITHIN * 4 / 7]  # seconds


@dataclass(frozen=True, kw_only=True)
class Reminder:
    """What the engine reports after each of these times, and until when the customer may pay."""

    at: datetime
    until: datetime

    def is_due(self, *, transfer: bool) -> bool:
        """Return whether it counts: at most half of the time is left.

        One that is meant for cards comes for transfers, too, while nearly all of their time is left.
        """
        allowed = TRANSFERRED_WITHIN if transfer else CONFIRMED_WITHIN
        return (self.until - self.at).total_seconds() <= allowed / 2
