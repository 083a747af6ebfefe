"""The shipper: collects reserved goods and delivers them."""

from django.conf import settings

from orchestration.api import Call, action

from .partner import KeyedAgent
from .shapes import Booked, Booking, ByKey, Effect


class Shipping(KeyedAgent):
    """Wraps the shipper's bookings."""

    name = "shipping"
    partner = "shipping"
    base_url = settings.SHIPPING_URL
    policy = {"time_allowed": 10.0, "call_timeout": 4.0, "tries": 2, "failure_threshold": 5}

    @action(guarded=("order", "reservation"))
    async def book(self, call: Call, _wanted: Booking) -> Booked:
        """Book a parcel, with all that is known of its address."""
        return await self.post(call, "/shipping/shipments", body=call.payload, expect=Booked)

    @action(guarded=("key",))
    async def cancel(self, call: Call, wanted: ByKey) -> Effect:
        """Cancel what was booked under a key, if anything; the effect is cancel or none.

        The shipper refuses once the parcel is on its way; then staff must act.
        """
        return await self.undone(call, wanted)
