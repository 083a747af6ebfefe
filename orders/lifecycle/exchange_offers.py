"""What a customer gets for goods that come back: priced when asked for, and kept in the return's row.

What is bought again costs what was paid for it, with its part of the discount; other products cost what they
do now. Shipping that was paid goes over to the replacement with the last units of an order. Pure functions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orders.charges import Charges, Discount, charge, from_json
from orders.handling import Handling
from orders.handling import from_json as handling_from_json
from orders.models import Order, OrderLine

from .message import Line

Bought = Line | OrderLine


class NotExchangeable(Exception):
    """These goods are not exchanged: the code of a gift card cannot be sent back."""


class TooDear(Exception):
    """The wish costs more than what comes back; `left` is that, in minor units."""

    def __init__(self, left: int) -> None:
        super().__init__(left)
        self.left = left


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Products at the prices of now, the tax `rates` of each, and how an order of them is handled."""

    lines: Sequence[Line]
    rates: Mapping[str, int]
    handling: Handling


@dataclass(frozen=True, kw_only=True)
class Coming:
    """What comes back: units by SKU, what they cost, and whether they are the `last` of their order."""

    order: Order
    bought: Sequence[Bought]
    units: Mapping[str, int]
    amount: int
    last: bool

    @property
    def shipping(self) -> int:
        """Of the amount, what was paid for delivery."""
        return from_json(self.order.charges).shipping if self.last else 0

    @property
    def goods(self) -> int:
        """Of the amount, what was paid for the goods: as much as others may cost."""
        return max(0, self.amount - self.shipping)


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A replacement."""

    lines: Sequence[Line]
    charges: Charges
    handling: Handling

    @property
    def total(self) -> int:
        """What it costs, in minor units."""
        return sum(line.price for line in self.lines) + self.charges.extra

    @property
    def paid(self) -> Handling:
        """How it is handled: what comes back pays all of it."""
        return replace(self.handling, exchange=self.total)

    @property
    def words(self) -> str:
        """Its units and products."""
        return ", ".join(f"{line.quantity} x {line.name}" for line in self.lines)

    def as_json(self) -> dict[str, Any]:
        """Return JSON."""
        return {
            "lines": [line.as_json() for line in self.lines],
            "charges": self.charges.as_json(),
            "handling": self.handling.as_json(self.lines, self.total),
            "total": self.total,
        }


def read(value: Mapping[str, Any]) -> Offer:
    """Return the offer in a return's row."""
    return Offer(
        lines=[Line(**line) for line in value["lines"]],
        charges=from_json(value["charges"]),
        handling=handling_from_json(value["handling"]),
    )


def offer(wish: Wish, coming: Coming) -> Offer:
    """Price a wish; raise `TooDear` for one above what comes back, or `NotExchangeable`."""
    order, units = coming.order, coming.units
    if units.keys() & set(handling_from_json(order.handling).emailed):
        raise NotExchangeable
    paid = {line.sku: line.unit_price for line in coming.bought}
    again = {line.sku for line in wish.lines if line.quantity <= units.get(line.sku, 0)}
    lines = [
        replace(line, unit_price=paid[line.sku]) if line.sku in again else line
        for line in wish.lines
    ]
    agreed = from_json(order.charges)
    gross = sum(paid[sku] * count for sku, count in units.items())
    again_gross = sum(line.price for line in lines if line.sku in again)
    off = again_gross - coming.goods * again_gross // gross if agreed.discount else 0
    new = Offer(
        lines=lines,
        charges=charge(
            lines,
            shipping=coming.shipping,
            discount=Discount(code=agreed.code, amount=off) if off > 0 else None,
            rates=wish.rates,
        ),
        handling=wish.handling,
    )
    if new.total > coming.amount:
        raise TooDear(coming.goods)
    return new
