"""What an order costs beyond its lines, in answers of the API."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import Field

from .schema_fields import Amount

CODE = "A discount code as the customer typed it. One that cannot be used is refused (409)."
GIFT_CARD = "The code of a gift card, which pays what it can. One that cannot pay is refused (409)."
CHARGES_EXAMPLE: dict[str, Any] = {
    "shipping": 490,
    "discount": 190,
    "discount_code": "WELCOME",
    "taxes": [{"percent": 7.0, "net": 2056, "tax": 144}],
    "gift_card_paid": 0,
    "exchange_paid": 0,
    "to_pay": 2200,
    "released_at": None,
    "made_within_days": None,
}


class Tax(Schema):
    """The tax of one rate in an order's total."""

    percent: Annotated[float, Field(examples=[19.0])]
    net: Amount
    tax: Amount


class Charged(Schema):
    """Shipping, discount and taxes; the total is the lines and shipping, less the discount.

    How it is paid, and when it comes if not at once.
    """

    shipping: Annotated[int, Field(description="Including tax.", examples=[490])] = 0
    discount: Annotated[int, Field(description="Off the lines.", examples=[190])] = 0
    discount_code: Annotated[str, Field(examples=["WELCOME"])] = ""
    taxes: Annotated[
        list[Tax],
        Field(description="In the total, by rate. Empty: nothing in it is taxed, as in exports."),
    ] = []
    gift_card_paid: Annotated[int, Field(description="Of the total, by a gift card.")] = 0
    exchange_paid: Annotated[
        int, Field(description="Of the total, by goods that came back of another order.")
    ] = 0
    to_pay: Annotated[
        int | None, Field(description="What that leaves; 0 asks for no payment.", examples=[2200])
    ] = None
    released_at: Annotated[
        datetime | None,
        Field(description="The order waits until then, and is paid then. Null: it does not wait."),
    ] = None
    made_within_days: Annotated[
        int | None, Field(description="Part of it is made to order. Null: all is in stock.")
    ] = None
