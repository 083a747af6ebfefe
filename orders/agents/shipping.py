"""The shipper: collects reserved goods and delivers them."""

from typing import Any

from django.conf import settings

from orchestration.api import Call, action

from .json_schemas import ADDRESS, TEXT, exact_object
from .partner import BY_KEY, KeyedAgent

RESERVATION = {"type": ["string", "null"], "minLength": 1}


class Shipping(KeyedAgent):
    """Wraps the shipper's bookings."""

    name = "shipping"
    partner = "shipping"
    base_url = settings.SHIPPING_URL
    moves_money = (
        True  # goods are worth it: a parcel that was never sent is not taken on one person's word
    )
    policy = {"time_allowed": 10.0, "call_timeout": 4.0, "tries": 2, "failure_threshold": 5}
    results = {"book": {"id": str, "tracking": str}, "cancel": {"effect": str}}

    @action(
        accepts=exact_object(order=TEXT, reservation=RESERVATION, address=ADDRESS),
        returns=exact_object(id=TEXT, tracking=TEXT),
        guarded=("order", "reservation", "address"),
    )
    async def book(self, call: Call) -> dict[str, Any]:
        """Book {order, reservation or null, address}; returns {id, tracking}.

        What is made to order has no reservation.
        """
        body = {name: value for name, value in call.payload.items() if value is not None}
        return await self.done(call, "/shipping/shipments", body)

    @action(accepts=BY_KEY, returns=exact_object(effect=TEXT), guarded=("key",))
    async def cancel(self, call: Call) -> dict[str, Any]:
        """Cancel what {key} booked, if anything; returns {effect}: cancel or none.

        The shipper refuses once the parcel is on its way; then staff must act.
        """
        return await self.undone(call)
