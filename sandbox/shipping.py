"""The carriers: each books shipments of reserved stock, and cancels them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.fields import text
from sandbox.goods import read_lines
from sandbox.inventory import Inventory
from sandbox.labels import LABEL_ACTIONS, Labels
from sandbox.partner import NO_EFFECT, Call, Effect, Entry, Json, NewId, Partner
from sandbox.refusals import Refusal
from sandbox.reservations import Reservation

TRACKING = {"shp": "TRK", "cou": "EXP"}  # how tracking numbers begin, by the prefix of ids


@dataclass(slots=True)
class Shipment:
    """A parcel: booked → cancelled."""

    ref: str
    order: str
    key: str | None
    reservation: str
    warehouses: set[str]
    status: str = "booked"


class Carrier(Partner):
    """Books a shipment per reservation, or per warehouse of one; its stock is shipped then.

    Goods that were never in stock have no reservation.

    A request may name the `warehouse`; without one, all that is reserved goes into one parcel. If it names
    `lines`, only these go, and the rest stays reserved.
    """

    prefix: str  # of its ids
    not_served: frozenset[str] = frozenset()  # countries

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.shipments: dict[str, Shipment] = {}

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Book or cancel; raises Refusal for a reservation that cannot be shipped."""
        if call.action == "cancel":
            shipment = self.shipments.get(call.ref or "")
            if shipment is None:
                raise Refusal(404, "unknown_shipment", f"Unknown shipment '{call.ref}'.")
            return _cancel(shipment)
        text(call.params, "order")
        if "reservation" not in call.params:  # goods that were never in stock: made to order
            return Effect(201, ref=new_id("shp"))
        reservation = text(call.params, "reservation")
        self._require_served(call.params.get("address"))
        warehouses = self._warehouses(reservation, call.params.get("warehouse") or "")
        detail: Json = {"warehouses": sorted(warehouses)}
        if "lines" in call.params:
            known = self._inventory.reservations[reservation]
            detail["lines"] = known.to_send(read_lines(call.params), warehouses)
        return Effect(201, ref=new_id(self.prefix), parent=reservation, detail=detail)

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Cancel the shipment that was booked."""
        _ = new_id
        return _cancel(self.shipments[done.ref or ""])

    def apply(self, entry: Entry) -> str | None:
        """Move the stock; cancelling undoes the key that booked."""
        ref = entry.ref or ""
        if entry.effect == "book":
            parent = entry.parent or ""
            warehouses: set[str] = set()
            if parent:
                reservation = self._inventory.reservations[parent]
                detail = entry.detail or {"warehouses": reservation.warehouses}
                warehouses = set(detail["warehouses"])
                lines = detail.get("lines", reservation.held(warehouses))
                self._inventory.ship(parent, warehouses, lines)
            self.shipments[ref] = Shipment(ref, entry.order or "", entry.key, parent, warehouses)
            return None
        shipment = self.shipments[ref]
        if entry.effect == "cancel":
            shipment.status = "cancelled"
            if shipment.reservation:
                self._inventory.unship(shipment.reservation, shipment.warehouses)
        return shipment.key

    def body(self, entry: Entry) -> Json:
        """Return the shipment as it was right after the call."""
        shipment = self.shipments[entry.ref or ""]
        return _show(shipment, "booked" if entry.action == "book" else "cancelled")

    def view(self, ref: str) -> Json | None:
        """Return the shipment as it is now."""
        shipment = self.shipments.get(ref)
        return _show(shipment, shipment.status) if shipment else None

    def order_of(self, ref: str) -> str | None:
        """Return the shipment's order."""
        shipment = self.shipments.get(ref)
        return shipment.order if shipment else None

    def _require_served(self, address: Any) -> None:
        country = address.get("country") if isinstance(address, Mapping) else None
        if country in self.not_served:
            raise Refusal(
                422, "not_served", f"This carrier does not deliver to {country}.", stored=True
            )

    def _warehouses(self, ref: str, only: str) -> set[str]:
        """Return the warehouses that a parcel is from; raises Refusal if that cannot be shipped."""
        reservation = self._inventory.reservations.get(ref)
        if reservation is None:
            raise Refusal(422, "unknown_reservation", f"Unknown reservation '{ref}'.", stored=True)
        if reservation.released:
            raise Refusal(
                409,
                "reservation_released",
                f"Reservation '{ref}' has been released. Make a new reservation.",
                stored=True,
            )
        return _to_ship(reservation, only)


class Shipping(Carrier):
    """The usual carrier, which does not go everywhere, and also brings back what customers return."""

    name = "shipping"
    prefix = "shp"
    not_served = frozenset({"PT"})

    def __init__(self, inventory: Inventory) -> None:
        super().__init__(inventory)
        self.labels = Labels()

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Book, make a label, or cancel; raises Refusal for what cannot be shipped or has a label."""
        if call.action in LABEL_ACTIONS:
            return self.labels.decide(call, new_id)
        return super().decide(call, new_id)

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Cancel the shipment that was booked, or the label."""
        if done.action in LABEL_ACTIONS:
            return self.labels.undo(done)
        return super().undo(done, new_id)

    def apply(self, entry: Entry) -> str | None:
        """Move the stock, or note the label; cancelling undoes the key that made either."""
        if entry.effect in LABEL_ACTIONS:
            return self.labels.apply(entry)
        return super().apply(entry)

    def body(self, entry: Entry) -> Json:
        """Return the shipment or the label as it was right after the call."""
        if entry.action in LABEL_ACTIONS:
            return self.labels.body(entry)
        return super().body(entry)

    def order_of(self, ref: str) -> str | None:
        """Return the order of a shipment or a label."""
        return super().order_of(ref) or self.labels.order_of(ref)


class Courier(Carrier):
    """The other carrier, which goes everywhere."""

    name = "courier"
    prefix = "cou"


def _to_ship(reservation: Reservation, only: str) -> set[str]:
    """Return the warehouses that a parcel is from; raises Refusal if one of them has sent its own."""
    warehouses = {only} if only else reservation.warehouses
    if unknown := warehouses - reservation.warehouses:
        raise Refusal(
            422,
            "unknown_warehouse",
            f"Reservation '{reservation.ref}' has nothing in '{min(unknown)}'.",
            stored=True,
        )
    if warehouses & reservation.shipped.keys():
        raise Refusal(
            409,
            "reservation_shipped",
            f"Reservation '{reservation.ref}' has a shipment already. Cancel that one first.",
        )
    return warehouses


def _cancel(shipment: Shipment) -> Effect:
    kind = NO_EFFECT if shipment.status == "cancelled" else "cancel"
    return Effect(ref=shipment.ref, parent=shipment.reservation, kind=kind)


def _show(shipment: Shipment, status: str) -> Json:
    prefix, _, number = shipment.ref.partition("_")
    return {
        "id": shipment.ref,
        "status": status,
        "tracking": TRACKING[prefix] + number.upper(),
        "order": shipment.order,
        "reservation": shipment.reservation,
    }
