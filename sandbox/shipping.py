"""The shipper: books shipments of reserved stock, makes labels of returns, and cancels both."""

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


@dataclass(slots=True)
class Label:
    """A paid label of a return: made → void."""

    ref: str
    order: str
    key: str | None
    of: str
    status: str = "made"


class Shipping(Partner):
    """Books a shipment per reservation; booking moves its stock from reserved to shipped.

    A return has one label at a time, by whichever key.
    """

    name = "shipping"

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.shipments: dict[str, Shipment] = {}
        self.labels: dict[str, Label] = {}

    def decide(self, call: Call, new_id: NewId) -> Effect:
        """Book, make a label, or cancel; raises Refusal for what cannot be shipped or has a label."""
        if call.action in {"label", "void"}:
            return self._decide_label(call, new_id)
        if call.action == "cancel":
            shipment = self.shipments.get(call.ref or "")
            if shipment is None:
                raise Refusal(404, "unknown_shipment", f"Unknown shipment '{call.ref}'.")
            return _cancel(shipment)
        text(call.params, "order")
        reservation = text(call.params, "reservation")
        self._check(reservation)
        return Effect(201, ref=new_id("shp"), parent=reservation)

    def undo(self, done: Entry, new_id: NewId) -> Effect:
        """Cancel the shipment that was booked, or the label."""
        _ = new_id
        if done.action == "label":
            return _void(self.labels[done.ref or ""])
        return _cancel(self.shipments[done.ref or ""])

    def apply(self, entry: Entry) -> str | None:
        """Move the stock; cancelling undoes the key that booked."""
        ref = entry.ref or ""
        if entry.effect == "label":
            self.labels[ref] = Label(ref, entry.order or "", entry.key, entry.parent or "")
            return None
        if entry.effect == "void":
            self.labels[ref].status = "void"
            return self.labels[ref].key
        if entry.effect == "book":
            parent = entry.parent or ""
            self.shipments[ref] = Shipment(ref, entry.order or "", entry.key, parent)
            self._inventory.ship(parent)
            return None
        shipment = self.shipments[ref]
        if entry.effect == "cancel":
            shipment.status = "cancelled"
            self._inventory.unship(shipment.reservation)
        return shipment.key

    def body(self, entry: Entry) -> Json:
        """Return the shipment or the label as it was right after the call."""
        if entry.action in {"label", "void"}:
            return _show_label(
                self.labels[entry.ref or ""], "made" if entry.action == "label" else "void"
            )
        shipment = self.shipments[entry.ref or ""]
        return _show(shipment, "booked" if entry.action == "book" else "cancelled")

    def view(self, ref: str) -> Json | None:
        """Return the shipment as it is now."""
        shipment = self.shipments.get(ref)
        return _show(shipment, shipment.status) if shipment else None

    def order_of(self, ref: str) -> str | None:
        """Return the order of a shipment or a label."""
        known = self.shipments.get(ref) or self.labels.get(ref)
        return known.order if known else None

    def _decide_label(self, call: Call, new_id: NewId) -> Effect:
        if call.action == "void":
            label = self.labels.get(call.ref or "")
            if label is None:
                raise Refusal(404, "unknown_label", f"Unknown label '{call.ref}'.")
            return _void(label)
        text(call.params, "order")
        of = text(call.params, "return")
        made = [
            label.ref for label in self.labels.values() if (label.of, label.status) == (of, "made")
        ]
        if made:
            raise Refusal(
                409,
                "label_exists",
                f"The return '{of}' has the label '{made[0]}' already.",
                stored=True,
            )
        return Effect(201, ref=new_id("lbl"), parent=of)

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


def _void(label: Label) -> Effect:
    kind = NO_EFFECT if label.status == "void" else "void"
    return Effect(ref=label.ref, parent=label.of, kind=kind)


def _show_label(label: Label, status: str) -> Json:
    return {
        "id": label.ref,
        "status": status,
        "tracking": "RET" + label.ref.partition("_")[2].upper(),
        "order": label.order,
        "return": label.of,
    }
