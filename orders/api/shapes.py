"""What goes in and out of the API. Amounts are in minor units (cents), times in UTC."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import BeforeValidator, ConfigDict, Field

from orders.cards import Card
from orders.countries import COUNTRIES
from orders.message import DEAREST, LANGUAGES, LONGEST, MOST_LINES, MOST_PER_LINE


def _number(value: object) -> object:
    """Refuse what only looks like a number: true is no quantity, nor is "2"."""
    if isinstance(value, bool | str):
        raise ValueError("This is not a number.")  # noqa: TRY004 - pydantic asks for this one
    return value


# not pydantic's "strict": 2.0 is a whole number, as JSON has one kind of numbers only
PLAIN = BeforeValidator(_number)
Amount = Annotated[int, Field(description="In minor units (cents).", examples=[4250])]
Currency = Annotated[str, Field(description="ISO 4217.", examples=["EUR"])]
Country = Annotated[
    str,
    Field(
        description="ISO 3166-1, of a country that we deliver to.",
        json_schema_extra={"enum": sorted(COUNTRIES)},
        pattern=f"^({'|'.join(sorted(COUNTRIES))})$",
        examples=["DE"],
    ),
]
PaymentMethod = Annotated[
    str,
    Field(
        description="The id of a payment method at the payment provider.",
        json_schema_extra={"enum": list(Card.values)},
        pattern=f"^({'|'.join(Card.values)})$",
        examples=["pm_card_visa"],
    ),
]
PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
TRIMMED = r"^[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$"
LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
EMAIL = (
    rf"^[A-Za-z0-9_+-]{{1,60}}(\.[A-Za-z0-9_+-]{{1,60}}){{0,4}}@({LABEL}\.){{1,4}}[A-Za-z]{{2,24}}$"
)
FAIRNESS_KEY = "Orders of different keys take turns: many of one do not delay a few of another."
CANCELLATION = "Of a request to cancel: on its way, or too late. Accepted, the status says so."
Status = Literal["received", "processing", "completed", "failed", "undoing", "undone"]

ORDER = "7f3b8a52-5a0e-5c7e-9a57-0d4ee2a4c9d1"
PLACED = "2026-11-21T16:00:00Z"
LINE = {"sku": "coffee-morning", "name": "Morning House Blend", "quantity": 2, "unit_price": 950,
        "price": 1900}  # fmt: skip
PLACED_EXAMPLE: dict[str, Any] = {
    "id": ORDER,
    "number": "FWXRM-MJT1W",
    "placed_at": PLACED,
    "total": 1900,
    "currency": "EUR",
    "lines": [LINE],
    "url": f"https://shop.example/api/orders/{ORDER}",
    "page": f"https://shop.example/orders/{ORDER}/?t=0bBmDk…",
}


def text(name: str, example: str) -> Any:
    """Return the type of a text that an order holds: printable, no longer than it may be, no space around."""
    field = Field(min_length=1, max_length=LONGEST[name], pattern=TRIMMED, examples=[example])
    return Annotated[str, field]


class Strict(Schema):
    """What comes in: nothing that we do not know, so that nobody's typing error is overlooked."""

    model_config = ConfigDict(extra="forbid")


class Address(Strict):
    """Where an order goes."""

    name: text("name", "Ada Lovelace")  # type: ignore[valid-type] # a type made here
    street: text("street", "Rue de Lyon 12")  # type: ignore[valid-type]
    postcode: text("postcode", "1203")  # type: ignore[valid-type]
    city: text("city", "Genève")  # type: ignore[valid-type]
    country: Country


class Wanted(Strict):
    """So many of one product."""

    sku: Annotated[
        str,
        Field(max_length=LONGEST["sku"], pattern=r"^[\w.-]+$", examples=["coffee-morning"]),
    ]
    quantity: Annotated[int, Field(ge=1, le=MOST_PER_LINE, examples=[2]), PLAIN]


class NewOrder(Strict):
    """An order to be placed. Prices are ours; `expected_total` makes sure that they are as you think."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "email": "ada@example.org",
                    "address": {"name": "Ada Lovelace", "street": "Rue de Lyon 12",
                                "postcode": "1203", "city": "Genève", "country": "CH"},
                    "payment_method": "pm_card_visa",
                    "lines": [{"sku": "coffee-morning", "quantity": 2}],
                    "expected_total": 1900,
                }
            ]
        }
    )  # fmt: skip

    email: Annotated[
        str,
        Field(
            max_length=LONGEST["email"],
            pattern=EMAIL,
            description="Whom the shop writes to about the order.",
            examples=["ada@example.org"],
        ),
    ]
    address: Address
    payment_method: PaymentMethod
    language: Annotated[
        str,
        Field(
            description="In which the shop writes to the customer.",
            json_schema_extra={"enum": sorted(LANGUAGES)},
            pattern=f"^({'|'.join(sorted(LANGUAGES))})$",
        ),
    ] = "en"
    lines: Annotated[
        list[Wanted], Field(min_length=1, max_length=MOST_LINES, description="Each product once.")
    ]
    expected_total: Annotated[
        int | None,
        Field(
            ge=1,
            le=MOST_LINES * MOST_PER_LINE * DEAREST,
            description="If it is not the total at today's prices, nothing is ordered (409).",
        ),
        PLAIN,
    ] = None
    fairness_key: Annotated[
        str, Field(max_length=30, pattern=r"^[A-Za-z0-9._-]*$", description=FAIRNESS_KEY)
    ] = ""
    priority: Annotated[int, Field(ge=-10, le=10, description="Higher goes first."), PLAIN] = 0


class Line(Schema):
    """So many of one product, at the price of that moment."""

    sku: str
    name: str
    quantity: int
    unit_price: Amount
    price: Amount


class Placed(Schema):
    """An order that was accepted: it will be processed, or undone; it is never lost."""

    model_config = ConfigDict(json_schema_extra={"examples": [PLACED_EXAMPLE]})

    id: UUID
    number: Annotated[str, Field(description="The id, short enough to read out.")]
    placed_at: datetime
    total: Amount
    currency: Currency
    lines: list[Line]
    url: Annotated[str, Field(description="Where to read how it goes.")]
    page: Annotated[
        str, Field(description="The customer's own page. Whoever has this link sees it all.")
    ]


class Step(Schema):
    """One step of what is done, or undone, for an order."""

    name: Annotated[str, Field(examples=["authorize_payment"])]
    direction: Literal["do", "undo"]
    state: Annotated[
        Literal["waiting", "pending", "processing", "processed", "error", "skipped", "cancelled"],
        Field(description="Processed and skipped are done; an error is being seen to."),
    ]
    ended_at: datetime | None


class Trouble(Schema):
    """Why an order does not go on."""

    step: str
    code: Annotated[str, Field(examples=["card_declined"])]
    mend_by: Annotated[
        datetime | None,
        Field(description="Until when the customer may mend it on its page; then it is undone."),
    ]


class Order(Placed):
    """An order, and how it goes."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    **PLACED_EXAMPLE,
                    "status": "completed",
                    "cancellable": False,
                    "cancellation": None,
                    "tracking": "TRK4711",
                    "steps": [{"name": "reserve_stock", "direction": "do", "state": "processed",
                               "ended_at": PLACED}],
                    "trouble": [],
                }
            ]
        }
    )  # fmt: skip

    status: Status
    cancellable: Annotated[bool, Field(description="Whether it could be cancelled at this moment.")]
    cancellation: Annotated[Literal["asked", "refused"] | None, Field(description=CANCELLATION)]
    tracking: Annotated[str, Field(description="The parcel's number, once there is a parcel.")]
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
    """A page of a list, newest first."""

    orders: list[Summary]
    next: Annotated[str | None, Field(description="The address of the next page, if there is one.")]


class Cancellation(Strict):
    """Why an order is cancelled."""

    reason: Annotated[
        str, Field(max_length=200, pattern=PRINTABLE, examples=["Ordered twice."])
    ] = ""


class Wrong(Schema):
    """What is wrong with one field."""

    field: Annotated[str, Field(examples=["lines.0.sku"])]
    message: str


class Problem(Schema):
    """What went wrong (RFC 9457): `code` is for programs, the sentences are for people."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {"type": "urn:problem:not_found", "title": "Not Found", "status": 404,
                 "code": "not_found", "detail": "There is no such order.",
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
    errors: list[Wrong]
