"""How the API shows what was removed from an order."""

from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field


class Units(Schema):
    """Units of a product that are no longer in an order."""

    sku: str
    name: str
    quantity: int


class Reduced(Schema):
    """What was removed from an order before it was sent."""

    removal: Annotated[
        Literal["asked", "refused"] | None,
        Field(description="The last request to remove something: pending, or too late."),
    ] = None
    removed: Annotated[list[Units], Field(description="What is no longer in it.")] = []
