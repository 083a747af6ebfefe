"""The inventory: reserves goods for an order."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any
from urllib.parse import quote

from django.conf import settings

from orchestration.api import Call, Fault, LedgerEntry, Rejected, action

from . import partner_ledger
from .error_codes import OUT_OF_STOCK
from .json_schemas import POSITIVE, TEXT, exact_object, non_empty_list, open_object, optional
from .partner import BY_KEY, MEND_WITHIN, KeyedAgent

ALLOCATED = exact_object(sku=TEXT, quantity=POSITIVE, warehouse=TEXT)
IN_WAREHOUSES = {"type": "array", "items": ALLOCATED, "default": []}
PLACE = optional(
    open_object(sku=TEXT, quantity=POSITIVE, warehouse={"type": "string"}), "warehouse"
)
PART = exact_object(order=TEXT, reservation=TEXT, lines=non_empty_list(PLACE))
GOODS = exact_object(order=TEXT, lines=non_empty_list(open_object(sku=TEXT, quantity=POSITIVE)))


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
        "on_rejection": "wait",  # the customer may leave out or wait for what is sold out
        "resolve_within": MEND_WITHIN,
    }
    results = {
        "reserve": {"id": str},
        "release": {"effect": str},
        "release_part": {"id": str},
        "restock": {"id": str},
    }

    def ledger(self) -> Iterable[LedgerEntry] | None:
        """Return what the inventory did, then its stock of each SKU."""
        done = super().ledger()
        return None if done is None else chain(done, partner_ledger.levels(self.base_url))

    def refusal(self, status: int, answer: Mapping[str, Any]) -> Fault:
        """Return the fault for an error; the message of "out of stock" begins with the SKU."""
        fault = super().refusal(status, answer)
        if fault.code != OUT_OF_STOCK:
            return fault
        return Rejected(fault.code, f"{answer['error'].get('sku', '')}: {fault.message}")

    def result_of(self, call: Call, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was done, and where the goods are if that is not in one warehouse."""
        done = super().result_of(call, answer)
        lines = answer.get("lines", [])
        if call.action != "reserve" or len({line.get("warehouse") for line in lines}) < 2:
            return done
        return {
            **done,
            "lines": [{name: line[name] for name in ALLOCATED["required"]} for line in lines],
        }

    @action(
        accepts=GOODS,
        returns=optional(exact_object(id=TEXT, lines=IN_WAREHOUSES), "lines"),
        guarded=("order", "lines"),
    )
    async def reserve(self, call: Call) -> dict[str, Any]:
        """Reserve {order, lines: [{sku, quantity}]}, all or nothing; returns {id, lines?}.

        `lines` [{sku, quantity, warehouse}] are there if not all of it is in one warehouse.
        """
        return await self.done(call, "/inventory/reservations", _goods(call))

    @action(accepts=BY_KEY, returns=exact_object(effect=TEXT), guarded=("key",))
    async def release(self, call: Call) -> dict[str, Any]:
        """Release what {key} reserved, if anything; returns {effect}: release or none."""
        return await self.undone(call)

    @action(accepts=PART, returns=exact_object(id=TEXT), guarded=("order", "reservation", "lines"))
    async def release_part(self, call: Call) -> dict[str, Any]:
        """Release {lines: [{sku, quantity, warehouse?}]} of a {reservation}; returns {id}.

        Nothing is left to do where all of it has been released. What is sent is not released.
        """
        path = f"/inventory/reservations/{quote(call.payload['reservation'], safe='')}/parts"
        body = {name: call.payload[name] for name in ("order", "lines")}
        return await self.done(call, path, body)

    @action(accepts=GOODS, returns=exact_object(id=TEXT), guarded=("order", "lines"))
    async def restock(self, call: Call) -> dict[str, Any]:
        """Have {order, lines} that came back on hand again; returns {id}."""
        return await self.done(call, "/inventory/returns", _goods(call))


def _goods(call: Call) -> dict[str, Any]:
    lines = [{"sku": line["sku"], "quantity": line["quantity"]} for line in call.payload["lines"]]
    return {"order": call.payload["order"], "lines": lines}
