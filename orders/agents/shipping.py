"""The shipper: fetches what is set aside, and brings it to the customer."""

from typing import Any

from django.conf import settings

from orchestration.api import Call, action

from .partner import PartnerAgent


class Shipping(PartnerAgent):
    """Wraps the shipper's bookings."""

    name = "shipping"
    base_url = settings.SHIPPING_URL
    policy = {"time_allowed": 10.0, "call_timeout": 4.0, "tries": 2, "failure_threshold": 5}

    @action
    async def book(self, call: Call) -> dict[str, Any]:
        """Book {order, reservation, address}; returns {id, tracking}."""
        answer = await self.post(
            call, "/shipping/shipments", body=call.payload, expect={"id": str, "tracking": str}
        )
        return {"id": answer["id"], "tracking": answer["tracking"]}
