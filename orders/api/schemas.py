"""Request and response bodies of the API. Amounts are in minor units of the currency, times in UTC."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import ConfigDict, Field

from orders.cards import Card
from orders.countries import COUNTRIES
from orders.currency import shop_currency
from orders.lifecycle.fields import MAX_LENGTH
from orders.lifecycle.message import LANGUAGES, MAX_LINES, MAX_QUANTITY
from orders.lifecycle.plain_text import VISIBLE
from orders.money import largest_price

from .charge_schemas import CHARGES_EXAMPLE, CODE, GIFT_CARD, Charged
from .parcel_schemas import Parcel
from .payment_schemas import PaymentDue
from .removal_schemas import Reduced
from .schema_fields import COMPOSED, NUMBER, Amount, Currency, choice, optional_text, text

POSTCODE = "As the country writes it. Required, except in Ireland."
REGION = "County or province, by name or code; in Italy and Spain the postcode may stand for it."
PAYMENT_METHOD = (
    "The id of a payment method at the payment provider. Required, unless nothing is left to pay."
)
FAIRNESS_KEY = "Orders with different keys take turns; a burst with one key does not delay others."
CANCELLATION = "The last request to cancel: pending or too late; null once accepted."
ADDRESS_CHANGE = "The last request for another address, likewise."
Status = Literal["received", "processing", "completed", "failed", "undoing", "undone"]

ORDER = "7f3b8a52-5a0e-5c7e-9a57-0d4ee2a4c9d1"
PLACED = "2026-11-21T16:00:00Z"
LINE = {"sku": "coffee-morning", "name": "Morning House Blend", "quantity": 2, "unit_price": 950,
        "price": 1900}  # fmt: skip
PLACED_EXAMPLE: dict[str, Any] = {
    "id": ORDER,
    "number": "FWXRM-MJT1W",
    "placed_at": PLACED,
    "total": 2200,
    "currency": shop_currency(),
    "lines": [LINE],
    **CHARGES_EXAMPLE,
    "url": f"https://shop.example/api/orders/{ORDER}",
    "page": f"https://shop.example/orders/{ORDER}/?t=0bBmDk…",
}


class Strict(Schema):
    """A request body; unknown fields are rejected, so that misspelt ones are noticed."""

    model_config = ConfigDict(extra="forbid")


class Address(Strict):
    """The delivery address."""

    name: text("name", "Ada Lovelace")  # type: ignore[valid-type] # a type made here
    street: text("street", "Rue de Lyon 12")  # type: ignore[valid-type]
    postcode: optional_text("postcode", "1203", POSTCODE) = ""  # type: ignore[valid-type]
    city: text("city", "Genève")  # type: ignore[valid-type]
    region: optional_text("region", "", REGION) = ""  # type: ignore[valid-type]
    country: Annotated[
        str, choice(sorted(COUNTRIES), "ISO 3166-1 code of a country with delivery.", "DE")
    ]


class NewLine(Strict):
    """A product and its quantity."""

    sku: Annotated[
        str,
        Field(max_length=MAX_LENGTH["sku"], pattern=r"^[\w.-]+$", examples=["coffee-morning"]),
    ]
    quantity: Annotated[int, Field(ge=1, le=MAX_QUANTITY, examples=[2]), NUMBER]


class NewOrder(Strict):
    """A new order. The shop sets the prices; `expected_total` guards against changed ones."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "email": "ada@example.org",
                    "address": {"name": "Ada Lovelace", "street": "Kastanienallee 12",
                                "postcode": "10435", "city": "Berlin", "country": "DE"},
                    "payment_method": "pm_card_visa",
                    "lines": [{"sku": "coffee-morning", "quantity": 2}],
                    "expected_total": 2200,
                    "discount_code": "WELCOME",
                }
            ]
        }
    )  # fmt: skip

    email: Annotated[
        str,
        Field(
            max_length=MAX_LENGTH["email"],
            json_schema_extra={"format": "email"},  # the checkout's form decides
            description="The customer's e-mail address.",
            examples=["ada@example.org"],
        ),
        COMPOSED,
    ]
    address: Address
    payment_method: Annotated[
        str,
        choice(Card.values, PAYMENT_METHOD, "pm_card_visa"),
    ] = ""
    language: Annotated[
        str, choice(sorted(LANGUAGES), "The language of e-mails to the customer.")
    ] = "en"
    lines: Annotated[
        list[NewLine], Field(min_length=1, max_length=MAX_LINES, description="Each product once.")
    ]
    discount_code: optional_text("code", "WELCOME", CODE) = ""  # type: ignore[valid-type]
    gift_card: optional_text("code", "", GIFT_CARD) = ""  # type: ignore[valid-type]
    expected_total: Annotated[
        int | None,
        Field(
            ge=0,
            le=MAX_LINES * MAX_QUANTITY * largest_price(),
            description="If this differs from today's total with shipping, nothing is ordered (409).",
        ),
        NUMBER,
    ] = None
    fairness_key: Annotated[
        str, Field(max_length=30, pattern=r"^[A-Za-z0-9._-]*$", description=FAIRNESS_KEY)
    ] = ""
    priority: Annotated[int, Field(ge=-10, le=10, description="Higher runs first."), NUMBER] = 0


class Line(Schema):
    """A product, its quantity and its price when ordered."""

    sku: str
    name: str
    quantity: int
    unit_price: Amount
    price: Amount


class Placed(Charged):
    """An accepted order: it will be completed or undone."""

    model_config = ConfigDict(json_schema_extra={"examples": [PLACED_EXAMPLE]})

    id: UUID
    number: Annotated[str, Field(description="The id, short enough to read out.")]
    placed_at: datetime
    total: Amount
    currency: Currency
    lines: list[Line]
    url: Annotated[str, Field(description="Read the order's progress here.")]
    page: Annotated[
        str | None,
        Field(
            description="The customer's page. The link gives access to the whole order, so only a token "
            "with the scope orders:write is given it."
        ),
    ]


class Step(Schema):
    """One step of an order's workflow, or of its undo."""

    name: Annotated[str, Field(examples=["authorize_payment"])]
    direction: Literal["do", "undo"]
    state: Annotated[
        Literal["waiting", "pending", "processing", "awaiting", "processed", "error", "skipped", "cancelled"],
        Field(description="Staff or the customer resolve an error; a skipped step is not needed; what is "
              "awaiting ends later."),
    ]  # fmt: skip
    ended_at: datetime | None


class Trouble(Schema):
    """An error that stops an order."""

    step: str
    code: Annotated[str, Field(examples=["card_declined"])]
    resolve_by: Annotated[
        datetime | None,
        Field(
            description="The customer may fix it on the order's page until then; later it is undone."
        ),
    ]


class Order(Reduced, Placed):
    """An order and its progress."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    **PLACED_EXAMPLE,
                    "status": "completed",
                    "cancellable": False,
                    "cancellation": None,
                    "address_change": None,
                    "removal": None,
                    "removed": [],
                    "payment_due": None,
                    "refunded": 0,
                    "tracking": "TRK4711",
                    "parcels": [
                        {"state": "sent", "carrier": "shipping", "tracking": "TRK4711",
                         "lines": [{"sku": "coffee-morning", "quantity": 2}]},
                    ],
                    "ended_at": PLACED,
                    "steps": [{"name": "reserve_stock", "direction": "do", "state": "processed",
                               "ended_at": PLACED}],
                    "trouble": [],
                }
            ]
        }
    )  # fmt: skip

    status: Status
    cancellable: Annotated[bool, Field(description="Whether the order can be cancelled now.")]
    cancellation: Annotated[Literal["asked", "refused"] | None, Field(description=CANCELLATION)]
    address_change: Annotated[
        Literal["asked", "refused"] | None, Field(description=ADDRESS_CHANGE)
    ] = None
    refunded: Annotated[int, Field(description="Paid back since, of the total.", examples=[0])] = 0
    payment_due: Annotated[
        PaymentDue | None,
        Field(description="What the customer has to do; without orders:write it is null."),
    ]
    tracking: Annotated[
        str, Field(description="The tracking number of its one parcel, once sent; see `parcels`.")
    ]
    parcels: list[Parcel]
    ended_at: Annotated[datetime | None, Field(description="When processing or undo ended.")]
    steps: list[Step]
    trouble: list[Trouble]


class Summary(Schema):
    """An order in a list."""

    id: UUID
    number: str
    status: Status
    placed_at: datetime
    total: Amount
    currency: Currency
    url: str


class Orders(Schema):
    """A page of orders, newest first."""

    orders: list[Summary]
    next: Annotated[str | None, Field(description="URL of the next page, if any.")]


class Cancellation(Strict):
    """The reason for a cancellation."""

    reason: Annotated[str, Field(max_length=200, pattern=VISIBLE, examples=["Ordered twice."])] = ""


class FieldError(Schema):
    """An error of one field."""

    field: Annotated[str, Field(examples=["lines.0.sku"])]
    message: str


class Problem(Schema):
    """An error (RFC 9457): `code` is for programs, the sentences are for people."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {"type": "urn:problem:not_found", "title": "Not Found", "status": 404,
                 "code": "not_found", "detail": "Unknown order.",
                 "what_to_do": "Compare the address with the OpenAPI document.", "errors": []}
            ]
        },
    )  # fmt: skip

    type: str
    title: str
    status: int
    code: str
    detail: str
    what_to_do: str
    errors: list[FieldError]
