"""How the API shows parcels."""

from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field


class ParcelLine(Schema):
    """What is in a parcel."""

    sku: str
    quantity: int


class Parcel(Schema):
    """A parcel of an order: each warehouse that has some of its goods sends one."""

    state: Annotated[
        Literal["packing", "sent", "failed", "cancelled"],
        Field(description="A parcel that failed is with the staff; the others go on."),
    ]
    carrier: Annotated[str, Field(description="`shipping` or `courier`, once it is sent.")]
    tracking: Annotated[str, Field(description="Its tracking number, once it is sent.")]
    lines: list[ParcelLine]
