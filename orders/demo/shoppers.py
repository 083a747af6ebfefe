"""Simulated customers, who place real orders."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

from orders.cards import NO_CARD, Card
from orders.charges import Charges
from orders.handling import Handling
from orders.lifecycle.message import Address, Line, Message, fingerprint
from orders.lifecycle.placement import confirmation, place
from orders.models import GiftCard, Product
from orders.shop.quote import handling_of
from orders.shop.tariff import Tariff, tariff

from .catalogue import AWAY, GONE, SCARCE

NAMES = (
    "Ada Lovelace", "Alan Turing", "Annie Easley", "Barbara Liskov", "Edsger Dijkstra",
    "Emmy Noether", "Frances Allen", "Grace Hopper", "Hedy Lamarr", "Jean Bartik",
    "Karen Spärck Jones", "Katherine Johnson", "Konrad Zuse", "Leslie Lamport", "Lynn Conway",
    "Margaret Hamilton", "Mary Somerville", "Radia Perlman", "Shafi Goldwasser", "Sofja Kowalewskaja",
)  # fmt: skip
PLACES = (
    ("Kastanienallee", "10435", "Berlin", "DE"), ("Rue de Lyon", "1203", "Genève", "CH"),
    ("Mariahilfer Straße", "1060", "Wien", "AT"), ("Patrick Street", "T12 W8KP", "Cork", "IE"),
    ("Prinsengracht", "1015 DZ", "Amsterdam", "NL"), ("Via Garibaldi", "16124", "Genova", "IT"),
    ("Lange Straße", "20099", "Hamburg", "DE"), ("Rue du Bac", "75007", "Paris", "FR"),
)  # fmt: skip
Place = tuple[str, str, str, str]
FAR: Place = ("Rua Augusta", "1100-053", "Lisboa", "PT")  # where the usual carrier does not go
GERMAN = {"DE", "AT", "CH"}
CARDS = {  # weights in percent
    Card.VISA: 87,
    Card.DECLINED: 3,
    Card.NO_FUNDS: 1,
    Card.SLOW: 3,
    Card.LOST: 3,
    Card.APP: 2,
    Card.EXPIRES: 1,
}
LINES = (1, 2, 3)
LINES_WEIGHTS = (60, 30, 10)
QUANTITIES = (1, 2, 3)
QUANTITY_WEIGHTS = (75, 20, 5)


class NothingToSell(Exception):
    """The shop has no products."""


@dataclass(kw_only=True)
class Shoppers:
    """Places random orders; `chance` is the random generator, `products` are on offer."""

    chance: random.Random = field(default_factory=random.Random)
    products: list[Product] = field(default_factory=list)
    tariffs: dict[str, Tariff] = field(default_factory=dict)  # by country

    def __post_init__(self) -> None:
        if not self.products:
            self.products = list(Product.objects.in_stock().exclude(sku__in=(GONE, AWAY, SCARCE)))
        if not self.products:
            raise NothingToSell("there are no products: run `manage.py seed` first")

    def buy(
        self,
        *,
        card: str = "",
        order: UUID | None = None,
        also: Product | None = None,
        only: Product | None = None,
        to: Place | None = None,
        gift_card: GiftCard | None = None,
    ) -> UUID:
        """Place an order that includes `also`, or one of `only`; return its id.

        It is paid with `gift_card`, and beyond that with `card` or a random one.
        """
        lines = [_line(only, 1)] if only else self._lines(also)
        country, address = self._address(to)
        charges, handling = self._price(lines, country, [*filter(None, [also, only])])
        total = sum(line.price for line in lines) + charges.extra
        if gift_card:
            handling = replace(handling, gift_card=min(total, gift_card.balance))
        chosen = card or self.chance.choices(list(CARDS), list(CARDS.values()))[0]
        message = _message(
            order or uuid4(),
            address,
            lines,
            currency=self.products[0].currency,
            payment_method=str(chosen) if total > handling.gift_card else NO_CARD,
            charges=charges,
            handling=handling,
        )
        code = gift_card.unsent if gift_card else ""
        place(message, fingerprint(message.as_json()), gift_card=code)
        return message.order

    def _address(self, to: Place | None) -> tuple[str, Address]:
        """Return a country and an address in it."""
        street, postcode, city, country = to or self.chance.choice(PLACES)
        address = Address(
            name=self.chance.choice(NAMES),
            street=f"{street} {self.chance.randint(1, 120)}",
            postcode=postcode,
            city=city,
            country=country,
        )
        return country, address

    def _price(
        self, lines: Sequence[Line], country: str, others: Sequence[Product]
    ) -> tuple[Charges, Handling]:
        """Return what lines cost beyond their prices, and how they are handled."""
        if country not in self.tariffs:
            self.tariffs[country] = tariff(country)
        classes = {product.sku: product.tax_class for product in [*self.products, *others]}
        handling = handling_of(others)
        charges = self.tariffs[country].charges(lines, classes, emailed=handling.emailed)
        return charges, handling

    def _lines(self, also: Product | None) -> list[Line]:
        count = self.chance.choices(LINES, LINES_WEIGHTS)[0]
        products = self.chance.sample(self.products, min(count, len(self.products)))
        return [
            _line(product, self.chance.choices(QUANTITIES, QUANTITY_WEIGHTS)[0])
            for product in [*([also] if also else []), *products]
        ]


def _line(product: Product, quantity: int) -> Line:
    return Line(sku=product.sku, name=product.name, unit_price=product.due, quantity=quantity)


def _message(order: UUID, address: Address, lines: list[Line], **of: Any) -> Message:
    """Return the message of an order, whose customer speaks the language of the country."""
    language = "de" if address.country in GERMAN else "en"
    charges, handling = of["charges"], of["handling"]
    total = sum(line.price for line in lines) + charges.extra
    return Message(
        order=order,
        email=f"{address.name.lower().replace('ä', 'ae').replace(' ', '.')}@example.org",
        address=address,
        total=total,
        lines=lines,
        confirmation=confirmation(
            order, address.name, total, of["currency"], language, charges, handling
        ),
        language=language,
        **of,
    )
