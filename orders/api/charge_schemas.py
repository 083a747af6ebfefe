"""What an order costs beyond its lines, in answers of the API."""

from typing import Annotated, Any

from ninja import Schema
from pydantic import Field

from .schema_fields import Amount

CODE = "A discount code as the customer typed it. One that cannot be used is refused (409)."
CHARGES_EXAMPLE: dict[str, Any] = {
    "shipping": 490,
    "discount": 190,
    "discount_code": "WELCOME",
    "taxes": [{"percent": 7.0, "net": 2056, "tax": 144}],
}


class Tax(Schema):
    """The tax of one rate in an order's total."""

    percent: Annotated[float, Field(examples=[19.0])]
    net: Amount
    tax: Amount


class Charged(Schema):
    """Shipping, discount and taxes; the total is the lines and shipping, less the discount."""

    shipping: Annotated[int, Field(description="Including tax.", examples=[490])] = 0
    discount: Annotated[int, Field(description="Off the lines.", examples=[190])] = 0
    discount_code: Annotated[str, Field(examples=["WELCOME"])] = ""
    taxes: Annotated[
        list[Tax],
        Field(description="In the total, by rate. Empty: nothing in it is taxed, as in exports."),
    ] = []
