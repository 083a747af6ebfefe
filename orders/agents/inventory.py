"""The inventory: reserves goods for orders, says what there is, and takes what staff counted."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings

from orchestration.api import Call, Fault, Health, LedgerEntry, Rejected, action

from . import partner_ledger
from .error_codes import OUT_OF_STOCK
from .json_schemas import POSITIVE, TEXT, exact_object, non_empty_list, open_object, optional
from .partner import BY_KEY, MEND_WITHIN, KeyedAgent
from .stock_schemas import ADJUSTMENT, LEVELS, NOT_READ, PAGE, PAGE_OF, Answer

LEVELS_PATH = "/inventory/levels"
WITHIN = 0.8  # of a call's time: later the engine ends it, as in doubt
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
        "adjust": {"id": str, "change": int},
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

    async def ask(self, call: Call) -> dict[str, Any] | None:
        """Return the result under the call's key; a question about levels had no effect."""
        return None if call.action == "levels" else await super().ask(call)

    @action(
        accepts=ADJUSTMENT,
        returns=exact_object(id=TEXT, change={"type": "integer"}),
        guarded=("sku", "warehouse", "units"),
    )
    async def adjust(self, call: Call) -> dict[str, Any]:
        """Change what is on hand by {units}, or to what was counted; returns {id, change}."""
        asked = call.payload
        body = {"sku": asked["sku"], "warehouse": asked["warehouse"]}
        if asked["expected"] is None:
            body["change"] = asked["units"]
        else:
            body |= {"counted": asked["units"], "expected": asked["expected"]}
        return await self.done(call, "/inventory/adjustments", body)

    @action(accepts=PAGE_OF, returns=LEVELS)
    async def levels(self, call: Call) -> dict[str, Any]:
        """Return the levels of {sku}, or of the SKUs that come {after} one; {next} is the last of a page.

        What keeps it from that is a refusal, `not_read`: the next question comes in minutes, and no person
        has to decide about this one. What it says of the service's health stands.
        """
        asked = {name: value for name, value in call.payload.items() if value}
        at = time.time()  # no later than what the answer says
        path = f"{LEVELS_PATH}?" + urlencode({"limit": PAGE, **asked})
        try:
            async with asyncio.timeout(call.timeout * WITHIN):
                answer = await self.get(call, path, expect=Answer)
        except TimeoutError:
            raise Rejected(NOT_READ, "no answer in time", health=Health.BAD) from None
        except Fault as fault:
            health = fault.health or Health.BAD
            raise Rejected(NOT_READ, f"{fault.code}: {fault.message}", health=health) from fault
        after = asked.get("after", "")
        if answer is None or (answer.next is not None and answer.next <= after):
            raise Rejected(NOT_READ, "it names no levels, or a page that does not lead on")
        return {
            "at": at,
            "levels": answer.levels,
            "after": after,
            "sku": asked.get("sku", ""),
            "next": answer.next or "",
        }


def _goods(call: Call) -> dict[str, Any]:
    lines = [{"sku": line["sku"], "quantity": line["quantity"]} for line in call.payload["lines"]]
    return {"order": call.payload["order"], "lines": lines}
