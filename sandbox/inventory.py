"""The inventory: stock per SKU, and reservations of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.fields import text, whole
from sandbox.partner import NO_EFFECT, Call, Effect, Entry, Json, NewId, Partner
from sandbox.refusals import Refusal, bad_field

Lines = list[list[Any]]  # [[sku, quantity], ...]


@dataclass(slots=True)
class Stock:
    """Quantities of one SKU; start = on_hand + reserved + shipped at all times."""

    start: int = 0
    on_hand: int = 0
    reserved: int = 0
    shipped: int = 0


@dataclass(slots=True)
class Reservation:
    """Stock held for an order: reserved → released, or reserved → shipped (and back)."""

    ref: str
    order: str
    key: str | None
    lines: Lines
    status: str = "reserved"
    returned: dict[str, int] = field(default_factory=dict)


class Inventory(Partner):
    """Reserves stock and releases it; shipping moves reserved stock to shipped."""

    name = "inventory"

    def __init__(self) -> None:
        self.stock: dict[str, Stock] = {}
        self.reservations: dict[str, Reservation] = {}

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Reserve or release; raises Refusal for too little stock, or a shipped reservation."""
        if call.action == "release":
            return self._release(self.reservation(call.ref or ""))
        order = text(call.params, "order")
        if call.action == "restock":
            return self._restock(order, _lines(call.params), new_id)
        lines = self._available(_lines(call.params))
        return Effect(201, ref=new_id("rsv"), detail=lines)

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Release the reservation that was made; goods that came back stay on the shelf."""
        _ = new_id
        if done.action == "restock":
            raise Refusal(
                409,
                "restocked",
                "Goods that came back are sold again: this is not undone.",
                stored=True,
            )
        return self._release(self.reservations[done.ref or ""])

    def apply(self, entry: Entry) -> str | None:
        """Move the stock; releasing undoes the key that reserved."""
        if entry.effect == "stock":
            self._set(entry.detail)
            return None
        ref = entry.ref or ""
        if entry.effect == "restock":
            self._take_back(self.shipped(entry.order or ""), entry.detail)
            return None
        if entry.effect == "reserve":
            made = Reservation(ref, entry.order or "", entry.key, entry.detail)
            self.reservations[ref] = made
            self._move(made, "on_hand", "reserved")
            return None
        reservation = self.reservations[ref]
        if entry.effect == "release":
            self._move(reservation, "reserved", "on_hand")
            reservation.status = "released"
        return reservation.key

    def body(self, entry: Entry) -> Json:
        """Return the reservation, or what came back, as it was right after the call."""
        if entry.action == "restock":
            return {"id": entry.ref, "order": entry.order, "lines": _as_json(entry.detail)}
        reservation = self.reservations[entry.ref or ""]
        return _show(reservation, "reserved" if entry.action == "reserve" else "released")

    def view(self, ref: str) -> Json | None:
        """Return the current reservation."""
        reservation = self.reservations.get(ref)
        return _show(reservation, reservation.status) if reservation else None

    def order_of(self, ref: str) -> str | None:
        """Return the reservation's order."""
        reservation = self.reservations.get(ref)
        return reservation.order if reservation else None

    def reservation(self, ref: str) -> Reservation:
        """Return a reservation by id, or raise a 404 Refusal."""
        reservation = self.reservations.get(ref)
        if reservation is None:
            raise Refusal(404, "unknown_reservation", f"Unknown reservation '{ref}'.")
        return reservation

    def shipped(self, order: str) -> list[Reservation]:
        """Return the reservations of an order whose goods were sent."""
        return [
            known
            for known in self.reservations.values()
            if (known.order, known.status) == (order, "shipped")
        ]

    def ship(self, ref: str) -> None:
        """Move a reservation's stock from reserved to shipped."""
        reservation = self.reservations[ref]
        self._move(reservation, "reserved", "shipped")
        reservation.status = "shipped"

    def unship(self, ref: str) -> None:
        """Move a reservation's stock from shipped back to reserved."""
        reservation = self.reservations[ref]
        self._move(reservation, "shipped", "reserved")
        reservation.status = "reserved"

    def changes(self, levels: Mapping[str, Any]) -> dict[str, int]:
        """Return the part of {sku: quantity on hand} that differs from what is on hand now."""
        if not levels:
            raise bad_field("sku", "Send an object of quantities by SKU, as in {'mug': 40}.")
        quantities = {sku: whole(value, sku, least=0) for sku, value in levels.items()}
        return {
            sku: quantity
            for sku, quantity in quantities.items()
            if sku not in self.stock or self.stock[sku].on_hand != quantity
        }

    def levels(self) -> Json:
        """Return {sku: {start, on_hand, reserved, shipped}}."""
        return {
            sku: {name: getattr(stock, name) for name in Stock.__slots__}
            for sku, stock in sorted(self.stock.items())
        }

    def _set(self, quantities: Mapping[str, int]) -> None:
        for sku, quantity in quantities.items():
            stock = self.stock.setdefault(sku, Stock())
            stock.start += quantity - stock.on_hand
            stock.on_hand = quantity

    def _restock(self, order: str, lines: dict[str, int], new_id: NewId) -> Effect:
        """Have units of what was sent on hand again; raises Refusal for more than are left of it."""
        sent = self.shipped(order)
        for sku, quantity in lines.items():
            left = sum(_not_returned(reservation).get(sku, 0) for reservation in sent)
            if quantity > left:
                raise Refusal(
                    409,
                    "more_than_sent",
                    f"Only {left} of '{sku}' can come back, but {quantity} did.",
                    stored=True,
                    sku=sku,
                )
        return Effect(201, ref=new_id("ret"), detail=[[sku, count] for sku, count in lines.items()])

    def _take_back(self, sent: list[Reservation], lines: Lines) -> None:
        for sku, quantity in lines:
            left = quantity
            for reservation in sent:
                part = min(left, _not_returned(reservation).get(sku, 0))
                reservation.returned[sku] = reservation.returned.get(sku, 0) + part
                left -= part
            self.stock[sku].shipped -= quantity
            self.stock[sku].on_hand += quantity

    def _release(self, reservation: Reservation) -> Effect:
        if reservation.status == "shipped":
            raise Refusal(
                409,
                "reservation_shipped",
                f"Reservation '{reservation.ref}' has been shipped. Cancel its shipment first.",
            )
        kind = NO_EFFECT if reservation.status == "released" else "release"
        return Effect(ref=reservation.ref, kind=kind)

    def _available(self, lines: dict[str, int]) -> Lines:
        for sku, quantity in lines.items():
            stock = self.stock.get(sku)
            if stock is None:
                raise Refusal(422, "unknown_sku", f"Unknown SKU '{sku}'.", stored=True, sku=sku)
            if stock.on_hand < quantity:
                raise Refusal(
                    409,
                    "out_of_stock",
                    f"Only {stock.on_hand} of '{sku}' are on hand, but {quantity} were requested.",
                    stored=True,
                    sku=sku,
                )
        return [[sku, quantity] for sku, quantity in lines.items()]

    def _move(self, reservation: Reservation, source: str, target: str) -> None:
        for sku, quantity in reservation.lines:
            stock = self.stock[sku]
            setattr(stock, source, getattr(stock, source) - quantity)
            setattr(stock, target, getattr(stock, target) + quantity)


def _not_returned(reservation: Reservation) -> dict[str, int]:
    """Return what was sent of a reservation and did not come back."""
    return {sku: quantity - reservation.returned.get(sku, 0) for sku, quantity in reservation.lines}


def _lines(params: Mapping[str, Any]) -> dict[str, int]:
    lines = params.get("lines")
    if not isinstance(lines, list) or not lines:
        raise bad_field("lines", "'lines' must be a non-empty list of {sku, quantity}.")
    quantities: dict[str, int] = {}
    for line in lines:
        if not isinstance(line, dict):
            raise bad_field("lines", f"Each line must be {{sku, quantity}}, but one is {line!r}.")
        sku = text(line, "sku")
        quantities[sku] = quantities.get(sku, 0) + whole(line.get("quantity"), "quantity", least=1)
    return quantities


def _show(reservation: Reservation, status: str) -> Json:
    return {
        "id": reservation.ref,
        "status": status,
        "order": reservation.order,
        "lines": _as_json(reservation.lines),
    }


def _as_json(lines: Lines) -> list[Json]:
    return [{"sku": sku, "quantity": quantity} for sku, quantity in lines]
