"""Reservations of stock: what is held, was freed and was sent of each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from sandbox.goods import Lines, show_lines
from sandbox.partner import NO_EFFECT, Effect, Json
from sandbox.refusals import Refusal

Place = tuple[str, str]  # a SKU and a warehouse


@dataclass(slots=True)
class Reservation:
    """Stock held for an order: reserved → released, or reserved → shipped (and back).

    Parts of it may be freed before. What is in one warehouse is shipped by itself; `shipped` has what went
    from each.
    """

    ref: str
    order: str
    key: str | None
    lines: Lines
    released: bool = False
    freed: Lines = field(default_factory=list)
    shipped: dict[str, Lines] = field(default_factory=dict)
    returned: dict[str, int] = field(default_factory=dict)

    @property
    def warehouses(self) -> set[str]:
        """Where its goods are."""
        return {warehouse for *_, warehouse in self.lines}

    @property
    def status(self) -> str:
        """What it is called."""
        if self.released:
            return "released"
        unsent = any(warehouse not in self.shipped for *_, warehouse in self.held())
        return "shipped" if self.shipped and not unsent else "reserved"

    def sent(self) -> Iterator[list[Any]]:
        """Yield what its warehouses have sent."""
        return chain.from_iterable(self.shipped.values())

    def held(self, only: set[str] | None = None) -> Lines:
        """Return what is reserved and neither freed nor sent, everywhere or in some warehouses."""
        left = _sums(self.lines)
        for sku, quantity, warehouse in chain(self.freed, self.sent()):
            left[sku, warehouse] -= quantity
        return [
            [sku, quantity, warehouse]
            for (sku, warehouse), quantity in left.items()
            if quantity and (only is None or warehouse in only)
        ]

    def without(self, places: Lines) -> Effect:
        """Return the effect of letting a part go; raises Refusal unless that much of it is held.

        Nothing is left to do once all of it was released.
        """
        if self.released:
            return Effect(ref=self.ref, kind=NO_EFFECT)
        freed = Lines()
        for sku, quantity, warehouse in places:
            only = {warehouse} if warehouse else None
            freed += self._part(sku, quantity, self._rest(freed, only))
        return Effect(201, ref=self.ref, detail=freed)

    def to_send(self, named: Mapping[str, int] | None, warehouses: set[str]) -> Lines:
        """Return what a parcel from some warehouses takes of it: all that is held, or what is named.

        Goods that it never had are made to order. Raises Refusal if more is named than is held.
        """
        held = self.held(warehouses)
        if named is None:
            return held
        own = {sku for sku, *_ in self.lines}
        lines = Lines()
        for sku, quantity in named.items():
            if sku in own:
                lines += self._part(sku, quantity, held)
        return lines

    def not_returned(self) -> dict[str, int]:
        """Return what was sent of it and did not come back."""
        left = {sku: -quantity for sku, quantity in self.returned.items()}
        for sku, quantity, _ in self.sent():
            left[sku] = left.get(sku, 0) + quantity
        return left

    def show(self, status: str) -> Json:
        """Return it as JSON."""
        return {
            "id": self.ref,
            "status": status,
            "order": self.order,
            "lines": show_lines(self.lines),
        }

    def _rest(self, gone: Lines, only: set[str] | None) -> Lines:
        """Return what is held beside a part."""
        taken = _sums(gone)
        return [
            [sku, quantity - taken.get((sku, warehouse), 0), warehouse]
            for sku, quantity, warehouse in self.held(only)
        ]

    def _part(self, sku: str, quantity: int, held: Lines) -> Lines:
        """Return a number of pieces of what is held; raises Refusal if it is less."""
        part, missing = Lines(), quantity
        for name, available, warehouse in held:
            if name == sku and (taken := min(missing, available)):
                part.append([sku, taken, warehouse])
                missing -= taken
        if missing:
            raise Refusal(
                409,
                "not_reserved",
                f"Only {quantity - missing} of '{sku}' are held by '{self.ref}', and not {quantity}.",
                stored=True,
                sku=sku,
            )
        return part


def _sums(lines: Lines) -> dict[Place, int]:
    sums: dict[Place, int] = {}
    for sku, quantity, warehouse in lines:
        sums[sku, warehouse] = sums.get((sku, warehouse), 0) + quantity
    return sums
