"""The shipper: fetches what is set aside, and brings it to the customer."""

from typing import Any

from django.conf import settings

from orchestration.api import Call, action

from .partner import BY_KEY, KeyedAgent
from .shapes import ADDRESS, TEXT, record


class Shipping(KeyedAgent):
    """Wraps the shipper's bookings."""

    name = "shipping"
    partner = "shipping"
    base_url = settings.SHIPPING_URL
    policy = {"time_allowed": 10.0, "call_timeout": 4.0, "tries": 2, "failure_threshold": 5}
    results = {"book": {"id": str, "tracking": str}, "cancel": {"effect": str}}

    @action(
        accepts=record(order=TEXT, reservation=TEXT, address=ADDRESS),
        returns=record(id=TEXT, tracking=TEXT),
    )
    async def book(self, call: Call) -> dict[str, Any]:
        """Book {order, reservation, address}; returns {id, tracking}."""
        return await self.done(call, "/shipping/shipments", call.payload)

    @action(accepts=BY_KEY, returns=record(effect=TEXT))
    async def cancel(self, call: Call) -> dict[str, Any]:
        """Cancel what {key} booked, if it did; returns {effect}: cancel or none.

        A parcel that is on its way is not fetched back: the shipper refuses, and people see to it.
        """
        return await self.undone(call)
