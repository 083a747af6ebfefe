"""The inventory: sets goods aside for an order."""

from typing import Any

from django.conf import settings

from orchestration.api import Call, action

from .partner import PartnerAgent


class Inventory(PartnerAgent):
    """Wraps the inventory's reservations."""

    name = "inventory"
    base_url = settings.INVENTORY_URL
    policy = {"time_allowed": 10.0, "call_timeout": 3.0, "tries": 2, "failure_threshold": 5}

    @action
    async def reserve(self, call: Call) -> dict[str, Any]:
        """Set {order, lines: [{sku, quantity}]} aside, all of it or nothing; returns {id}."""
        lines = [
            {"sku": line["sku"], "quantity": line["quantity"]} for line in call.payload["lines"]
        ]
        body = {"order": call.payload["order"], "lines": lines}
        answer = await self.post(call, "/inventory/reservations", body=body, expect={"id": str})
        return {"id": answer["id"]}
