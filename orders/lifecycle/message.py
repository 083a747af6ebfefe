"""The message that describes an order (P18): written by the shop, read by the submission process.

A queue lies between the two, so `read` validates every detail of untrusted input.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from orders import addresses
from orders.cards import NO_CARD, RELEASED_WITHIN, TRANSFERRED_WITHIN, Card
from orders.charges import NONE, Charges
from orders.currency import shop_currency
from orders.handling import NONE as ORDINARY
from orders.handling import Handling
from orders.money import largest_price

from .fields import Malformed, check_fields, integer, one_of, text
from .message_charges import read_charges
from .message_handling import check_sums, read_handling
from .numbers import order_number

WORKFLOW = "process_order"  # processes these messages
PARCEL_WORKFLOW = "send_parcel"  # has a carrier take one of several parcels
EMAIL_WORKFLOW = "tell_customer"  # sends an e-mail
APPLICATION = "shop"  # names the private response queue
PRIVATE = ("address", "customer")  # stays in the order's row; not in its task
LANGUAGES = ("en", "de")
MAX_QUANTITY = 99
MAX_LINES = 50


@dataclass(frozen=True, kw_only=True)
class Line:
    """A product and its quantity; `unit_price` is in minor units."""

    sku: str
    name: str
    unit_price: int
    quantity: int

    @property
    def price(self) -> int:
        """Price of the line in minor units."""
        return self.unit_price * self.quantity

    def as_json(self) -> dict[str, Any]:
        """Return JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Address:
    """A delivery address; `country` is an ISO 3166 code of two letters.

    `region` is a county or province, by its code in `orders/addresses.py`, where the country has them.
    """

    name: str
    street: str
    postcode: str
    city: str
    country: str
    region: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines of the address, the country's name in the active language."""
        return addresses.lines(asdict(self))

    def as_json(self) -> dict[str, str]:
        """Return JSON as the former release reads it, unless there is what it does not know."""
        values = asdict(self)
        if not self.region and self.postcode:
            del values["region"]
        return values


@dataclass(frozen=True, kw_only=True)
class Mail:
    """An e-mail, rendered before it is sent, so that a repeated call sends the same text."""

    subject: str
    text: str
    html: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Message:
    """A placed order; `total` is in minor units, `customer` is the id of an account."""

    order: UUID
    email: str
    address: Address
    payment_method: str
    currency: str
    total: int
    lines: Sequence[Line]
    confirmation: Mail
    customer: int | None = None
    language: str = "en"
    charges: Charges = NONE
    handling: Handling = ORDINARY

    @property
    def number(self) -> str:
        """The order's number."""
        return order_number(self.order)

    @property
    def pay_within(self) -> int | None:
        """The seconds that the payment may take, unless they are those of a card at checkout."""
        if self.payment_method == Card.TRANSFER:
            return TRANSFERRED_WITHIN
        return RELEASED_WITHIN if self.handling.released_at else None

    def as_json(self) -> dict[str, Any]:
        """Return JSON, the same for equal orders; the former release reads it without what is special."""
        special = {
            "charges": self.charges.as_json(),
            "handling": self.handling.as_json(self.lines, self.total),
        }
        values = {
            **asdict(self),
            "order": str(self.order),
            "lines": [line.as_json() for line in self.lines],
            "address": self.address.as_json(),
            **({"pay_within": self.pay_within} if self.pay_within else {}),
        }
        return {
            **{name: value for name, value in values.items() if name not in special},
            **{name: value for name, value in special.items() if value},
        }


def fingerprint(content: Any) -> str:
    """Return the SHA-256 of a JSON value, independent of the order of its keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def public(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a message that its task has."""
    return {name: value for name, value in data.items() if name not in PRIVATE}


def read(data: Mapping[str, Any]) -> Message:
    """Return the message in `data`; raise `Malformed` if it is invalid in any detail.

    Raises `NewerFormat` for content that a later release may have added.
    """
    check_fields(
        data,
        "the order",
        "order email address payment_method currency total lines confirmation customer",
        optional="language charges handling pay_within",  # messages of older releases lack the first two
    )
    lines = _lines(data["lines"])
    handling = read_handling(data.get("handling"), lines)
    charges = read_charges(data.get("charges"), lines, handling.emailed)
    total = sum(line.price for line in lines) + charges.extra
    if data["total"] != total or isinstance(data["total"], bool):
        also = " with shipping and discount" if charges.extra else ""
        raise Malformed(f"total is {data['total']!r}, but the lines add up to {total}{also}")
    check_sums(handling, data.get("handling"), lines, total)
    methods = Card.values if total > handling.paid else [NO_CARD]
    payment_method = one_of(methods, data["payment_method"], "payment method")
    currency = one_of([shop_currency()], data["currency"], "currency")
    customer = data["customer"]
    language = one_of(LANGUAGES, data.get("language", "en"), "language")
    message = Message(
        order=_uuid(data["order"]),
        email=_email(data["email"]),
        address=_address(data["address"]),
        payment_method=payment_method,
        currency=currency,
        total=total,
        lines=lines,
        confirmation=_mail(data["confirmation"]),
        customer=None if customer is None else integer(customer, "customer", most=2**31 - 1),
        language=language,
        charges=charges,
        handling=handling,
    )
    if data.get("pay_within") != message.pay_within:
        raise Malformed(f"pay_within is {data.get('pay_within')!r}")
    return message


def _lines(value: Any) -> list[Line]:
    if not isinstance(value, list) or not value or len(value) > MAX_LINES:
        raise Malformed(f"lines must be a list of 1 to {MAX_LINES}")
    lines = []
    for line in value:
        check_fields(line, "a line", "sku name unit_price quantity")
        lines.append(
            Line(
                sku=text(line["sku"], "sku"),
                name=text(line["name"], "product"),
                unit_price=integer(line["unit_price"], "unit_price", most=largest_price()),
                quantity=integer(line["quantity"], "quantity", most=MAX_QUANTITY),
            )
        )
    if len({line.sku for line in lines}) < len(lines):
        raise Malformed("a product is on two lines")
    return lines


def _address(value: Any) -> Address:
    # messages of older releases lack the region; not every country has postcodes
    check_fields(value, "the address", "name street postcode city country", optional="region")
    missing = {"region"} if addresses.needs_postcode(value["country"]) else {"region", "postcode"}
    return Address(
        **{
            name: "" if part == "" and name in missing else text(part, name)
            for name, part in value.items()
        }
    )


def _mail(value: Any) -> Mail:
    check_fields(value, "the confirmation", "subject text", optional="html")
    html = value.get("html", "")
    return Mail(
        subject=text(value["subject"], "subject"),
        text=text(value["text"], "text"),
        html=text(html, "html") if html else "",
    )


def _email(value: Any) -> str:
    email = text(value, "email")
    name, at, domain = email.rpartition("@")
    if not (name and at and domain) or any(letter.isspace() for letter in email):
        raise Malformed(f"email {email!r} is not an e-mail address")
    return email


def _uuid(value: Any) -> UUID:
    try:
        uuid = UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise Malformed(f"order {value!r} is not a UUID") from None
    if str(uuid) != value:
        raise Malformed(f"order {value!r} is not in the form {uuid}")
    return uuid
