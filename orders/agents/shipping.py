"""The shipper: collects reserved goods and delivers them."""

from typing import Any

from django.conf import settings

from orchestration.api import Call, action

from .json_schemas import ADDRESS, MOMENT, TEXT, exact_object, optional
from .partner import BY_KEY, KeyedAgent


class Shipping(KeyedAgent):
    """Wraps the shipper's bookings."""

    name = "shipping"
    partner = "shipping"
    base_url = settings.SHIPPING_URL
    moves_money = (
        True  # goods are worth it: a parcel that was never sent is not taken on one person's word
    )
    policy = {"time_allowed": 10.0, "call_timeout": 4.0, "tries": 2, "failure_threshold": 5}
    results = {
        "book": {"id": str, "tracking": str},
        "cancel": {"effect": str},
        "label": {"id": str, "tracking": str},
        "void": {"effect": str},
    }

    @action(
        accepts=optional(
            exact_object(order=TEXT, reservation=TEXT, address=ADDRESS, address_changed=MOMENT),
            "address_changed",
        ),
        returns=exact_object(id=TEXT, tracking=TEXT),
        guarded=("order", "reservation", "address"),
    )
    async def book(self, call: Call) -> dict[str, Any]:
        """Book {order, reservation, address, address_changed?}; returns {id, tracking}.

        When the address was changed is not the shipper's: it has the engine refuse a later change.
        """
        body = {name: value for name, value in call.payload.items() if name != "address_changed"}
        return await self.done(call, "/shipping/shipments", body)

    @action(accepts=BY_KEY, returns=exact_object(effect=TEXT), guarded=("key",))
    async def cancel(self, call: Call) -> dict[str, Any]:
        """Cancel what {key} booked, if anything; returns {effect}: cancel or none.

        The shipper refuses once the parcel is on its way; then staff must act.
        """
        return await self.undone(call)

    @action(
        accepts=exact_object(**{"order": TEXT, "return": TEXT}),
        returns=exact_object(id=TEXT, tracking=TEXT),
        guarded=("order", "return"),
    )
    async def label(self, call: Call) -> dict[str, Any]:
        """Make the label of {order, return}; returns {id, tracking}. A return has one at a time."""
        return await self.done(call, "/shipping/labels", call.payload)

    @action(accepts=BY_KEY, returns=exact_object(effect=TEXT), guarded=("key",))
    async def void(self, call: Call) -> dict[str, Any]:
        """Have the label that {key} made, if any, cost nothing; returns {effect}: void or none."""
        return await self.undone(call)
