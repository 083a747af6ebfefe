"""Quantities of one SKU in warehouses, what is read of them, and what changes them beside orders."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.fields import text, whole
from sandbox.partner import Effect, Json, NewId
from sandbox.refusals import Refusal, bad_field

COUNTS = ("start", "on_hand", "reserved", "shipped")
LONGEST_PAGE = 1_000  # SKUs


@dataclass(slots=True)
class Stock:
    """Quantities of one SKU; start = on_hand + reserved + shipped at all times.

    `warehouses` are the quantities on hand in each, which add up to `on_hand`, `held` those reserved.
    `moved_at` is when one of them last changed, in Unix time.
    """

    start: int = 0
    on_hand: int = 0
    reserved: int = 0
    shipped: int = 0
    warehouses: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    moved_at: float = 0.0

    def shelf(self, warehouse: str) -> int:
        """Return how much lies in a warehouse: on hand, or reserved and not shipped."""
        return self.warehouses.get(warehouse, 0) + self.held.get(warehouse, 0)

    def level(self) -> dict[str, list[int]]:
        """Return [on hand, reserved] by warehouse."""
        names = dict.fromkeys([*self.warehouses, *self.held])
        return {name: [self.warehouses.get(name, 0), self.held.get(name, 0)] for name in names}

    def add(self, warehouse: str, change: int) -> None:
        """Have more on hand, or less, that no order moved."""
        self.warehouses[warehouse] = self.warehouses.get(warehouse, 0) + change
        self.on_hand += change
        self.start += change


def page(stock: Mapping[str, Stock], query: Mapping[str, str], limit: int) -> Json:
    """Return the levels of `sku`, or of up to `limit` SKUs that come `after` one; `next` is the last of them.

    SKUs are in the order of their code points.
    """
    after = query.get("after", "")
    skus = sorted(sku for sku in stock if sku > after and query.get("sku") in {None, sku})
    shown = skus[: min(limit, LONGEST_PAGE)]
    levels = {sku: stock[sku].level() for sku in shown}
    return {"levels": levels, "next": shown[-1] if len(shown) < len(skus) else None}


def adjustment(stock: Mapping[str, Stock], params: Mapping[str, Any], new_id: NewId) -> Effect:
    """Return the effect of goods that came in or went, or were counted; raises Refusal.

    A count names how much lay on the shelf by the books, what is reserved included: reservations do not
    change that. If it is no longer so, goods were sent or came meanwhile, and are counted anew.
    """
    sku, warehouse = text(params, "sku"), text(params, "warehouse")
    of = stock.get(sku)
    if of is None:
        raise Refusal(422, "unknown_sku", f"Unknown SKU '{sku}'.", stored=True, sku=sku)
    if "counted" in params:
        expected = whole(params.get("expected"), "expected", least=0)
        change = whole(params["counted"], "counted", least=0) - expected
        if of.shelf(warehouse) != expected:
            message = (
                f"{of.shelf(warehouse)} of '{sku}' are in '{warehouse}' by now, not {expected}."
            )
            raise Refusal(409, "level_changed", message, stored=True)
    else:
        change = _change(params.get("change"))
    on_hand = of.warehouses.get(warehouse, 0)
    if on_hand + change < 0:
        message = f"Only {on_hand} of '{sku}' are on hand in '{warehouse}'; others are reserved."
        raise Refusal(409, "not_on_hand", message, stored=True)
    return Effect(201, ref=new_id("adj"), detail=[sku, warehouse, change])


def _change(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not value:
        raise bad_field("change", f"'change' must be a whole number but 0, not {value!r}.")
    return value


def show_change(detail: list[Any]) -> Json:
    """Return what an adjustment changed."""
    return dict(zip(("sku", "warehouse", "change"), detail, strict=True))
