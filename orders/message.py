"""The message that describes an order (P18): how it is written, and how strictly it is read.

The shop writes it, the submission process reads it, and between the two lies a queue: whatever
comes out is checked as if a stranger had put it there.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from .cards import Card
from .countries import COUNTRIES

WORKFLOW = "process_order"  # what processes these messages
LETTER = "tell_customer"  # what sends a letter
APPLICATION = "shop"  # the name of the private response queue
PRIVATE = ("address", "customer")  # what the shop keeps with the order, and no task is given
LANGUAGES = ("en", "de")  # that the shop speaks
CURRENCIES = ("EUR",)  # that it sells in
MOST_PER_LINE = 99
MOST_LINES = 50
DEAREST = 1_000_000  # of one piece, in minor units
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: no I, L, O, U to misread
LONGEST = {  # characters
    "email": 254,
    "name": 100,
    "street": 120,
    "postcode": 20,
    "city": 80,
    "country": 2,
    "sku": 40,
    "product": 120,
    "subject": 200,
    "text": 10_000,
    "html": 20_000,
}


class Malformed(ValueError):
    """The message cannot be an order; its text says why."""


class Newer(ValueError):
    """The message has something that this release does not know: one that does can take it."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """So many of one product; `unit_price` in minor units."""

    sku: str
    name: str
    unit_price: int
    quantity: int

    @property
    def price(self) -> int:
        """What the line costs, in minor units."""
        return self.unit_price * self.quantity

    def as_json(self) -> dict[str, Any]:
        """Return the line as JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where an order goes; `country` is an ISO 3166 code of two letters."""

    name: str
    street: str
    postcode: str
    city: str
    country: str

    @property
    def country_name(self) -> str:
        """The country, in words."""
        return str(COUNTRIES.get(self.country, self.country))


@dataclass(frozen=True, kw_only=True)
class Mail:
    """A letter, fixed before it is sent: a repeated call sends the same text."""

    subject: str
    text: str
    html: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the letter as JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Message:
    """An order as it was placed; `total` in minor units; `customer` is the id of an account."""

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

    def as_json(self) -> dict[str, Any]:
        """Return the message as JSON; the same order always gives the same."""
        lines = [line.as_json() for line in self.lines]
        return {**asdict(self), "order": str(self.order), "lines": lines}


def order_number(order: UUID) -> str:
    """Return the number people use for an order: 50 bits of its id, as in "7KQ4M-9XD2P"."""
    bits = order.int >> 78
    letters = "".join(LETTERS[(bits >> shift) & 31] for shift in range(45, -1, -5))
    return f"{letters[:5]}-{letters[5:]}"


def number(data: Mapping[str, Any]) -> str:
    """Return the number of the order that a message describes, or nothing if its id is none."""
    try:
        return order_number(UUID(data["order"]))
    except (KeyError, ValueError, AttributeError, TypeError):
        return ""  # `read` says what is wrong with it


def fingerprint(content: Any) -> str:
    """Return the SHA-256 of a JSON value, whatever the order of its names."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def public(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the task of an order has of its message."""
    return {name: value for name, value in data.items() if name not in PRIVATE}


def read(data: Mapping[str, Any]) -> Message:
    """Return the message in `data`; raise `Malformed` unless it is one in every detail.

    Raises `Newer` for what a later release may have added.
    """
    _exactly(
        data,
        "the order",
        "order email address payment_method currency total lines confirmation customer",
        optional="language",  # messages of older versions do not name it
    )
    lines = _lines(data["lines"])
    total = sum(line.price for line in lines)
    if data["total"] != total or isinstance(data["total"], bool):
        raise Malformed(f"its total is {data['total']!r}, but its lines add up to {total}")
    payment_method = _one_of(Card.values, data["payment_method"], "payment method")
    currency = _one_of(CURRENCIES, data["currency"], "currency")
    customer = data["customer"]
    language = _one_of(LANGUAGES, data.get("language", "en"), "language")
    return Message(
        order=_uuid(data["order"]),
        email=_email(data["email"]),
        address=_address(data["address"]),
        payment_method=payment_method,
        currency=currency,
        total=total,
        lines=lines,
        confirmation=_mail(data["confirmation"]),
        customer=None if customer is None else _whole(customer, "customer", most=2**31 - 1),
        language=language,
    )


def _lines(value: Any) -> list[Line]:
    if not isinstance(value, list) or not value or len(value) > MOST_LINES:
        raise Malformed(f"it needs between 1 and {MOST_LINES} lines")
    lines = []
    for line in value:
        _exactly(line, "a line", "sku name unit_price quantity")
        lines.append(
            Line(
                sku=_text(line["sku"], "sku"),
                name=_text(line["name"], "product"),
                unit_price=_whole(line["unit_price"], "unit_price", most=DEAREST),
                quantity=_whole(line["quantity"], "quantity", most=MOST_PER_LINE),
            )
        )
    if len({line.sku for line in lines}) < len(lines):
        raise Malformed("it names a product on two lines")
    return lines


def _address(value: Any) -> Address:
    _exactly(value, "the address", "name street postcode city country")
    return Address(**{name: _text(value[name], name) for name in value})


def _mail(value: Any) -> Mail:
    _exactly(value, "the confirmation", "subject text", optional="html")
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
        raise Malformed(f"{text!r} is no e-mail address")
    return text


def _uuid(value: Any) -> UUID:
    try:
        found = UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise Malformed(f"its id {value!r} is no UUID") from None
    if str(found) != value:
        raise Malformed(f"its id {value!r} is not written as {found}")
    return found


def _exactly(value: Any, what: str, names: str, *, optional: str = "") -> None:
    if not isinstance(value, Mapping):
        raise Malformed(f"{what} is not an object")
    wanted = set(names.split())
    if extra := value.keys() - wanted - set(optional.split()):
        raise Newer(f"{what} has parts that this release does not know: {', '.join(sorted(extra))}")
    if missing := wanted - value.keys():
        raise Malformed(f"{what} lacks {', '.join(sorted(missing))}")


def _one_of(known: Sequence[str], value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise Malformed(f"its {what} is {value!r}")
    if value not in known:
        raise Newer(f"its {what} {value!r} is not one that this release knows")
    return value


def _text(value: Any, name: str) -> str:
    longest = LONGEST[name]
    if not isinstance(value, str) or not value.strip():
        raise Malformed(f"{name} is empty or not a text")
    if len(value) > longest or "\0" in value:
        raise Malformed(f"{name} is longer than {longest} characters, or not printable")
    return value


def _whole(value: Any, name: str, *, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise Malformed(f"{name} is {value!r}; it must be a whole number from 1 to {most}")
    return value
