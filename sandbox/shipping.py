"""The shipper: books shipments of reserved stock, and cancels them."""

from dataclasses import dataclass

from sandbox.fields import text
from sandbox.inventory import Inventory
from sandbox.partner import NO_EFFECT, Call, Effect, Entry, Json, NewId, Partner
from sandbox.refusals import Refusal


@dataclass(slots=True)
class Shipment:
    """A parcel: booked → cancelled."""

    ref: str
    order: str
    key: str | None
    reservation: str
    status: str = "booked"


class Shipping(Partner):
    """Books a shipment per reservation; booking moves its stock from reserved to shipped.

    Goods that were never in stock have no reservation.
    """

    name = "shipping"

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
        self._check(reservation)
        return Effect(201, ref=new_id("shp"), parent=reservation)

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Cancel the shipment that was booked."""
        _ = new_id
        return _cancel(self.shipments[done.ref or ""])

    def apply(self, entry: Entry) -> str | None:
        """Move the stock; cancelling undoes the key that booked."""
        ref = entry.ref or ""
        if entry.effect == "book":
            parent = entry.parent or ""
            self.shipments[ref] = Shipment(ref, entry.order or "", entry.key, parent)
            if parent:
                self._inventory.ship(parent)
            return None
        shipment = self.shipments[ref]
        if entry.effect == "cancel":
            shipment.status = "cancelled"
            if shipment.reservation:
                self._inventory.unship(shipment.reservation)
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

    def _check(self, ref: str) -> None:
        reservation = self._inventory.reservations.get(ref)
        if reservation is None:
            raise Refusal(422, "unknown_reservation", f"Unknown reservation '{ref}'.", stored=True)
        if reservation.status == "released":
            raise Refusal(
                409,
                "reservation_released",
                f"Reservation '{ref}' has been released. Make a new reservation.",
                stored=True,
            )
        if reservation.status == "shipped":
            raise Refusal(
                409,
                "reservation_shipped",
                f"Reservation '{ref}' has a shipment already. Cancel that one first.",
            )


def _cancel(shipment: Shipment) -> Effect:
    kind = NO_EFFECT if shipment.status == "cancelled" else "cancel"
    return Effect(ref=shipment.ref, parent=shipment.reservation, kind=kind)


def _show(shipment: Shipment, status: str) -> Json:
    return {
        "id": shipment.ref,
        "status": status,
        "tracking": "TRK" + shipment.ref.partition("_")[2].upper(),
        "order": shipment.order,
        "reservation": shipment.reservation,
    }
