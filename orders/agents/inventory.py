"""The inventory: sets goods aside for an order."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from django.conf import settings

from orchestration.api import Call, Fault, LedgerEntry, Rejected, action

from .. import ledger
from ..tracking import OUT_OF_STOCK
from .partner import BY_KEY, MEND_WITHIN, KeyedAgent
from .shapes import POSITIVE, TEXT, record, several, some


class Inventory(KeyedAgent):
    """Wraps the inventory's reservations."""

    name = "inventory"
    partner = "inventory"
    base_url = settings.INVENTORY_URL
    policy = {
        "time_allowed": 10.0,
        "call_timeout": 3.0,
        "tries": 2,
        "failure_threshold": 5,
        "on_rejection": "wait",  # what is sold out can be left out, or waited for
        "mend_within": MEND_WITHIN,
    }
    results = {"reserve": {"id": str}, "release": {"effect": str}}

    def ledger(self) -> Iterable[LedgerEntry] | None:
        """Return what the inventory did, and then what it has of each SKU."""
        done = super().ledger()
        return None if done is None else chain(done, ledger.levels(self.base_url))

    def refusal(self, status: int, answer: Mapping[str, Any]) -> Fault:
        """Return what an error means; of goods that are out of stock, with the SKU in front."""
        fault = super().refusal(status, answer)
        if fault.code != OUT_OF_STOCK:
            return fault
        return Rejected(fault.code, f"{answer['error'].get('sku', '')}: {fault.message}")

    @action(
        accepts=record(order=TEXT, lines=several(some(sku=TEXT, quantity=POSITIVE))),
        returns=record(id=TEXT),
    )
    async def reserve(self, call: Call) -> dict[str, Any]:
        """Set {order, lines: [{sku, quantity}]} aside, all of it or nothing; returns {id}."""
        lines = [
            {"sku": line["sku"], "quantity": line["quantity"]} for line in call.payload["lines"]
        ]
        body = {"order": call.payload["order"], "lines": lines}
        return await self.done(call, "/inventory/reservations", body)

    @action(accepts=BY_KEY, returns=record(effect=TEXT))
    async def release(self, call: Call) -> dict[str, Any]:
        """Put back what {key} set aside, if it did; returns {effect}: release or none."""
        return await self.undone(call)
