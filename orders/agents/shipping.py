"""The carriers: each collects reserved goods and delivers them."""

from typing import Any

from django.conf import settings

from orchestration.api import Call, action

from .json_schemas import ADDRESS, MOMENT, POSITIVE, TEXT, exact_object, non_empty_list, optional
from .partner import BY_KEY, KeyedAgent

# where the other carrier takes a parcel: the usual one does not go there, or has been away for long
REFUSED = {"not_served": "pass", "away": "pass"}
LINES = non_empty_list(exact_object(sku=TEXT, quantity=POSITIVE))
# of an order from which something was removed: these alone go
ONLY = {**LINES, "type": ["array", "null"]}
# what is made to order has no reservation
RESERVATION = {"type": ["string", "null"], "minLength": 1}
# `lines` are for people who read the request: the warehouse knows what it has reserved
BOOKING = optional(
    exact_object(
        order=TEXT,
        reservation=RESERVATION,
        address=ADDRESS,
        address_changed=MOMENT,
        warehouse={"type": "string"},
        lines=LINES,
        only=ONLY,
    ),
    "address_changed",
    "warehouse",
    "lines",
    "only",
)


class Carrier(KeyedAgent):
    """Wraps a carrier's bookings."""

    moves_money = (
        True  # goods are worth it: a parcel that was never sent is not taken on one person's word
    )
    policy = {"time_allowed": 10.0, "call_timeout": 4.0, "tries": 2, "failure_threshold": 5}
    results = {"book": {"id": str, "tracking": str}, "cancel": {"effect": str}}

    @action(
        accepts=BOOKING,
        returns=exact_object(id=TEXT, tracking=TEXT),
        guarded=("order", "reservation", "address", "warehouse", "lines", "only"),
    )
    async def book(self, call: Call) -> dict[str, Any]:
        """Book {order, reservation?, address, address_changed?, warehouse?, lines?, only?}.

        Returns {id, tracking}. The parcel has what is reserved in the warehouse; without one, all of the
        reservation. Where lines are named as `only`, these go, and the rest stays reserved. When the
        address was changed is not the carrier's: it has the engine refuse a later change.
        """
        sent = ("order", "reservation", "address", "warehouse")
        body = {name: call.payload[name] for name in sent if call.payload.get(name)}
        if only := call.payload.get("only"):
            body["lines"] = only
        return await self.done(call, f"/{self.partner}/shipments", body)

    @action(accepts=BY_KEY, returns=exact_object(effect=TEXT), guarded=("key",))
    async def cancel(self, call: Call) -> dict[str, Any]:
        """Cancel what {key} booked, if anything; returns {effect}: cancel or none.

        The carrier refuses once the parcel is on its way; then staff must act.
        """
        return await self.undone(call)


class Shipping(Carrier):
    """The usual carrier, which also brings back what customers return."""

    name = "shipping"
    partner = "shipping"
    base_url = settings.SHIPPING_URL
    results = {**Carrier.results, "label": {"id": str, "tracking": str}, "void": {"effect": str}}

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


class Courier(Carrier):
    """The carrier for where the usual one does not go."""

    name = "courier"
    partner = "courier"
    base_url = settings.COURIER_URL
