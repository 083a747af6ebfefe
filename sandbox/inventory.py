"""The inventory: stock per SKU in warehouses, and reservations of it."""

from collections.abc import Mapping
from typing import Any

from sandbox.fields import text
from sandbox.goods import MAIN, Lines, by_warehouse, read_lines, read_places, show_lines
from sandbox.partner import NO_EFFECT, Call, Effect, Entry, Json, NewId, Partner
from sandbox.refusals import Refusal, bad_field
from sandbox.reservations import Reservation
from sandbox.stock import COUNTS, Stock, adjustment, show_change


class Inventory(Partner):
    """Reserves stock and releases it; shipping moves reserved stock to shipped."""

    name = "inventory"

    def __init__(self) -> None:
        self.stock: dict[str, Stock] = {}
        self.reservations: dict[str, Reservation] = {}
        self.now = 0.0  # Unix time of the entry that is being applied

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Reserve or release; raises Refusal for too little stock, or a shipped reservation."""
        if call.action == "release":
            return self._release(self.reservation(call.ref or ""))
        if call.action == "adjust":
            return adjustment(self.stock, call.params, new_id)
        order = text(call.params, "order")
        if call.action == "release_part":
            return self.reservation(call.ref or "").without(read_places(call.params))
        if call.action == "restock":
            return self._restock(order, read_lines(call.params), new_id)
        lines = self._allocated(read_lines(call.params))
        return Effect(201, ref=new_id("rsv"), detail=lines)

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Release the reservation that was made; goods that came back or were counted stay."""
        _ = new_id
        if done.action == "adjust":
            raise Refusal(409, "counted", "Goods that were counted are counted anew.", stored=True)
        if done.action != "reserve":
            raise Refusal(
                409,
                "restocked",
                "Goods that are on the shelf again are sold: this is not undone.",
                stored=True,
            )
        return self._release(self.reservations[done.ref or ""])

    def apply(self, entry: Entry) -> str | None:
        """Move the stock; releasing undoes the key that reserved."""
        if entry.effect == "stock":
            self._set(entry.detail)
            return None
        ref = entry.ref or ""
        if entry.effect == "adjust":
            sku, warehouse, change = entry.detail
            self.stock[sku].add(warehouse, change)
            self.stock[sku].moved_at = self.now
            return None
        if entry.effect == "restock":
            self._take_back(self.sent(entry.order or ""), entry.detail)
            return None
        if entry.effect == "reserve":
            lines = [[*line, MAIN][:3] for line in entry.detail]
            made = Reservation(ref, entry.order or "", entry.key, lines)
            self.reservations[ref] = made
            self._move(lines, "on_hand", "reserved")
            return None
        reservation = self.reservations[ref]
        if entry.effect == "release_part":
            self._move(entry.detail, "reserved", "on_hand")
            reservation.freed += entry.detail
            return None
        if entry.effect == "release":
            self._move(reservation.held(), "reserved", "on_hand")
            reservation.released = True
        return reservation.key

    def body(self, entry: Entry) -> Json:
        """Return the reservation, or what came back or changed, as it was right after the call."""
        if entry.action == "adjust":
            return {"id": entry.ref, **show_change(entry.detail)}
        if entry.action in {"restock", "release_part"}:
            return {"id": entry.ref, "order": entry.order, "lines": show_lines(entry.detail or [])}
        reservation = self.reservations[entry.ref or ""]
        return reservation.show("reserved" if entry.action == "reserve" else "released")

    def view(self, ref: str) -> Json | None:
        """Return the current reservation."""
        reservation = self.reservations.get(ref)
        return reservation.show(reservation.status) if reservation else None

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

    def sent(self, order: str) -> list[Reservation]:
        """Return an order's reservations whose goods were sent, in whole or in part."""
        return [
            known for known in self.reservations.values() if known.order == order and known.shipped
        ]

    def ship(self, ref: str, warehouses: set[str], lines: Lines) -> None:
        """Move a part of a reservation from reserved to shipped: what these warehouses send of it."""
        self._move(lines, "reserved", "shipped")
        parts = {name: [line for line in lines if line[2] == name] for name in warehouses}
        self.reservations[ref].shipped |= parts

    def unship(self, ref: str, warehouses: set[str]) -> None:
        """Move what was sent from some warehouses from shipped back to reserved."""
        reservation = self.reservations[ref]
        for warehouse in sorted(warehouses & reservation.shipped.keys()):
            self._move(reservation.shipped.pop(warehouse), "shipped", "reserved")

    def changes(self, levels: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        """Return what differs from what is on hand now, by SKU: {warehouse: quantity}.

        `levels` has for each SKU such an object, or one quantity, which is in the main warehouse.
        """
        if not levels:
            raise bad_field("sku", "Send an object of quantities by SKU, as in {'mug': 40}.")
        quantities = {sku: by_warehouse(sku, value) for sku, value in levels.items()}
        return {
            sku: counts
            for sku, counts in quantities.items()
            if sku not in self.stock or self.stock[sku].warehouses != counts
        }

    def levels(self) -> Json:
        """Return {sku: {start, on_hand, reserved, shipped, warehouses, held, moved_at}}.

        `warehouses` and `held` are what is on hand and reserved in each.
        """
        return {
            sku: {
                **{name: getattr(stock, name) for name in COUNTS},
                "warehouses": dict(stock.warehouses),
                "held": dict(stock.held),
                "moved_at": stock.moved_at,
            }
            for sku, stock in sorted(self.stock.items())
        }

    def _set(self, quantities: Mapping[str, Any]) -> None:
        for sku, value in quantities.items():
            stock = self.stock.setdefault(sku, Stock())
            stock.warehouses = by_warehouse(sku, value)
            quantity = sum(stock.warehouses.values())
            stock.start += quantity - stock.on_hand
            stock.on_hand = quantity
            stock.moved_at = self.now

    def _restock(self, order: str, lines: dict[str, int], new_id: NewId) -> Effect:
        """Have units of what was sent on hand again; raises Refusal for more than are left of it."""
        sent = self.sent(order)
        for sku, quantity in lines.items():
            left = sum(reservation.not_returned().get(sku, 0) for reservation in sent)
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
                part = min(left, reservation.not_returned().get(sku, 0))
                reservation.returned[sku] = reservation.returned.get(sku, 0) + part
                left -= part
            self._move([[sku, quantity, MAIN]], "shipped", "on_hand")

    def _release(self, reservation: Reservation) -> Effect:
        if reservation.shipped:
            raise Refusal(
                409,
                "reservation_shipped",
                f"Reservation '{reservation.ref}' has been shipped. Cancel its shipment first.",
            )
        kind = NO_EFFECT if reservation.released else "release"
        return Effect(ref=reservation.ref, kind=kind)

    def _allocated(self, lines: dict[str, int]) -> Lines:
        """Return from where each line is taken: one warehouse if one has all, else as few as it takes."""
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
        left, taken = dict(lines), Lines()
        names = list(dict.fromkeys(name for sku in lines for name in self.stock[sku].warehouses))
        while left:
            best = max(names, key=lambda name: self._share(left, name))
            names.remove(best)
            for sku, quantity in list(left.items()):
                if available := self._available(sku, quantity, best):
                    taken.append([sku, available, best])
                    left[sku] -= available
            left = {sku: quantity for sku, quantity in left.items() if quantity}
        return taken

    def _share(self, lines: Mapping[str, int], warehouse: str) -> tuple[int, int]:
        """Return how many lines a warehouse has whole, and how many pieces of all."""
        shares = {sku: self._available(sku, number, warehouse) for sku, number in lines.items()}
        return sum(shares[sku] == number for sku, number in lines.items()), sum(shares.values())

    def _available(self, sku: str, most: int, warehouse: str) -> int:
        return min(most, self.stock[sku].warehouses.get(warehouse, 0))

    def _move(self, lines: Lines, source: str, target: str) -> None:
        for sku, quantity, warehouse in lines:
            stock = self.stock[sku]
            setattr(stock, source, getattr(stock, source) - quantity)
            setattr(stock, target, getattr(stock, target) + quantity)
            stock.moved_at = self.now
            for counts, name in ((stock.warehouses, "on_hand"), (stock.held, "reserved")):
                if name in {source, target}:
                    change = quantity if target == name else -quantity
                    counts[warehouse] = counts.get(warehouse, 0) + change
