"""Customers of the demo: made up, but their orders are placed and processed like any other."""

import random
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from .cards import Card
from .catalogue import GONE
from .message import Address, Line, Message, fingerprint
from .models import Product
from .placing import confirmation, place

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
GERMAN = {"DE", "AT", "CH"}
CARDS = {  # how often each is chosen, of a hundred
    Card.VISA: 90,
    Card.DECLINED: 3,
    Card.NO_FUNDS: 1,
    Card.SLOW: 3,
    Card.LOST: 3,
}
LINES = (1, 2, 3)
LINES_OFTEN = (60, 30, 10)
PIECES = (1, 2, 3)
PIECES_OFTEN = (75, 20, 5)


class NothingToSell(Exception):
    """The shop has no products."""


@dataclass(kw_only=True)
class Shoppers:
    """A crowd of customers; `chance` decides what they want, the products are what there is."""

    chance: random.Random = field(default_factory=random.Random)
    products: list[Product] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.products:
            self.products = list(Product.objects.available().exclude(sku=GONE))
        if not self.products:
            raise NothingToSell("there are no products: run `manage.py seed` first")

    def buy(
        self, *, card: str = "", order: UUID | None = None, also: Product | None = None
    ) -> UUID:
        """Place one order, paid with `card` or any; `also` is in it. Return its id."""
        order = order or uuid4()
        lines = self._lines(also)
        street, postcode, city, country = self.chance.choice(PLACES)
        name = self.chance.choice(NAMES)
        address = Address(
            name=name,
            street=f"{street} {self.chance.randint(1, 120)}",
            postcode=postcode,
            city=city,
            country=country,
        )
        total = sum(line.price for line in lines)
        currency = self.products[0].currency
        language = "de" if country in GERMAN else "en"
        chosen = card or self.chance.choices(list(CARDS), list(CARDS.values()))[0]
        message = Message(
            order=order,
            email=f"{name.lower().replace('ä', 'ae').replace(' ', '.')}@example.org",
            address=address,
            payment_method=str(chosen),
            currency=currency,
            total=total,
            lines=lines,
            confirmation=confirmation(order, name, total, currency, language),
            language=language,
        )
        place(message, fingerprint(message.as_json()))
        return order

    def _lines(self, also: Product | None) -> list[Line]:
        count = self.chance.choices(LINES, LINES_OFTEN)[0]
        wanted = self.chance.sample(self.products, min(count, len(self.products)))
        return [
            Line(
                sku=product.sku,
                name=product.name,
                unit_price=product.price,
                quantity=self.chance.choices(PIECES, PIECES_OFTEN)[0],
            )
            for product in [*([also] if also else []), *wanted]
        ]
