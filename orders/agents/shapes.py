"""Types of the agents' payloads and results; corrections by operators must match them.

Partners' answers may have more fields than are read here.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

Text = Annotated[str, Meta(min_length=1)]
Positive = Annotated[int, Meta(ge=1)]
Currency = Annotated[str, Meta(pattern="^[A-Za-z]{3}$")]


class ByKey(Struct, frozen=True):
    """An undo of what was done under a key."""

    key: Text


class Effect(Struct, frozen=True):
    """What an undo by key has done."""

    effect: Text


class Made(Struct, frozen=True):
    """What a partner has made."""

    id: Text


class Line(Struct, frozen=True):
    """How many of a product."""

    sku: Text
    quantity: Positive


class Reservation(Struct, frozen=True):
    """Goods for an order, all or nothing."""

    order: Text
    lines: Annotated[list[Line], Meta(min_length=1)]


class Address(Struct, frozen=True):
    """Where a parcel goes; there may be more fields."""

    name: Text
    street: Text
    city: Text
    country: Text
    postcode: str = ""  # some countries have none


class Booking(Struct, frozen=True):
    """A parcel with reserved goods."""

    order: Text
    reservation: Text
    address: Address


class Booked(Made, frozen=True):
    """A parcel that will be collected."""

    tracking: Text


class Authorization(Struct, frozen=True):
    """An amount in minor units to be held on a card."""

    order: Text
    amount: Positive
    currency: Currency
    payment_method: Text


class Capture(Struct, frozen=True):
    """How much of an authorized payment to take."""

    payment: Text
    amount: Positive


class Charge(Struct, frozen=True):
    """Which payment to give back."""

    payment: Text


class Status(Made, frozen=True):
    """An intent or a refund."""

    status: Text


def exact_object(**fields: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object with exactly these fields, for what is one of several."""
    return {**open_object(**fields), "additionalProperties": False}


def open_object(**fields: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object with at least these fields."""
    return {"type": "object", "properties": fields, "required": list(fields)}
