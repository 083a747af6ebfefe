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
from orders.cards import TRANSFERRED_WITHIN, Card
from orders.currency import shop_currency
from orders.money import largest_price

from .numbers import order_number

WORKFLOW = "process_order"  # processes these messages
EMAIL_WORKFLOW = "tell_customer"  # sends an e-mail
APPLICATION = "shop"  # names the private response queue
PRIVATE = ("address", "customer")  # stays in the order's row; not in its task
LANGUAGES = ("en", "de")
MAX_QUANTITY = 99
MAX_LINES = 50
MAX_LENGTH = {  # characters
    "email": 254,
    "name": 100,
    "street": 120,
    "postcode": 20,
    "city": 80,
    "region": 80,
    "country": 2,
    "sku": 40,
    "product": 120,
    "subject": 200,
    "text": 10_000,
    "html": 20_000,
}


class Malformed(ValueError):
    """The message is not a valid order; the text gives the reason."""


class NewerFormat(ValueError):
    """The message has content unknown to this release; a newer release can process it."""


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

    @property
    def number(self) -> str:
        """The order's number."""
        return order_number(self.order)

    @property
    def _pay_within(self) -> dict[str, int]:
        """The seconds that the payment may take, unless they are those of a card."""
        by_transfer = self.payment_method == Card.TRANSFER
        return {"pay_within": TRANSFERRED_WITHIN} if by_transfer else {}

    def as_json(self) -> dict[str, Any]:
        """Return JSON, the same for equal orders."""
        return {
            **asdict(self),
            "order": str(self.order),
            "lines": [line.as_json() for line in self.lines],
            "address": self.address.as_json(),
            **self._pay_within,
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
    _check_fields(
        data,
        "the order",
        "order email address payment_method currency total lines confirmation customer",
        optional="language pay_within",  # messages of older releases lack the language
    )
    lines = _lines(data["lines"])
    total = sum(line.price for line in lines)
    if data["total"] != total or isinstance(data["total"], bool):
        raise Malformed(f"total is {data['total']!r}, but the lines add up to {total}")
    payment_method = _one_of(Card.values, data["payment_method"], "payment method")
    currency = _one_of([shop_currency()], data["currency"], "currency")
    customer = data["customer"]
    language = _one_of(LANGUAGES, data.get("language", "en"), "language")
    message = Message(
        order=_uuid(data["order"]),
        email=_email(data["email"]),
        address=_address(data["address"]),
        payment_method=payment_method,
        currency=currency,
        total=total,
        lines=lines,
        confirmation=_mail(data["confirmation"]),
        customer=None if customer is None else _integer(customer, "customer", most=2**31 - 1),
        language=language,
    )
    if data.get("pay_within") != message.as_json().get("pay_within"):
        raise Malformed(f"pay_within is {data.get('pay_within')!r}")
    return message


def _lines(value: Any) -> list[Line]:
    if not isinstance(value, list) or not value or len(value) > MAX_LINES:
        raise Malformed(f"lines must be a list of 1 to {MAX_LINES}")
    lines = []
    for line in value:
        _check_fields(line, "a line", "sku name unit_price quantity")
        lines.append(
            Line(
                sku=_text(line["sku"], "sku"),
                name=_text(line["name"], "product"),
                unit_price=_integer(line["unit_price"], "unit_price", most=largest_price()),
                quantity=_integer(line["quantity"], "quantity", most=MAX_QUANTITY),
            )
        )
    if len({line.sku for line in lines}) < len(lines):
        raise Malformed("a product is on two lines")
    return lines


def _address(value: Any) -> Address:
    # messages of older releases lack the region; not every country has postcodes
    _check_fields(value, "the address", "name street postcode city country", optional="region")
    missing = {"region"} if addresses.needs_postcode(value["country"]) else {"region", "postcode"}
    return Address(
        **{
            name: "" if text == "" and name in missing else _text(text, name)
            for name, text in value.items()
        }
    )


def _mail(value: Any) -> Mail:
    _check_fields(value, "the confirmation", "subject text", optional="html")
    html = value.get("html", "")
    return Mail(
        subject=_text(value["subject"], "subject"),
        text=_text(value["text"], "text"),
        html=_text(html, "html") if html else "",
    )


def _email(value: Any) -> str:
    text = _text(value, "email")
    name, at, domain = text.rpartition("@")
    if not (name and at and domain) or any(letter.isspace() for letter in text):
        raise Malformed(f"email {text!r} is not an e-mail address")
    return text


def _uuid(value: Any) -> UUID:
    try:
        uuid = UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise Malformed(f"order {value!r} is not a UUID") from None
    if str(uuid) != value:
        raise Malformed(f"order {value!r} is not in the form {uuid}")
    return uuid


def _check_fields(value: Any, what: str, names: str, *, optional: str = "") -> None:
    if not isinstance(value, Mapping):
        raise Malformed(f"{what} is not an object")
    required = set(names.split())
    if extra := value.keys() - required - set(optional.split()):
        raise NewerFormat(f"{what} has fields unknown to this release: {', '.join(sorted(extra))}")
    if missing := required - value.keys():
        raise Malformed(f"{what} lacks {', '.join(sorted(missing))}")


def _one_of(known: Sequence[str], value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise Malformed(f"{what} is {value!r}")
    if value not in known:
        raise NewerFormat(f"{what} {value!r} is unknown to this release")
    return value


def _text(value: Any, name: str) -> str:
    longest = MAX_LENGTH[name]
    if not isinstance(value, str) or not value.strip():
        raise Malformed(f"{name} is empty or not a string")
    if len(value) > longest or "\0" in value:
        raise Malformed(f"{name} is longer than {longest} characters, or not printable")
    return value


def _integer(value: Any, name: str, *, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise Malformed(f"{name} is {value!r}; it must be a whole number from 1 to {most}")
    return value
