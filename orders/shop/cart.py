"""The cart: SKUs, quantities and prices of a visitor, and an id that changes with the content.

The id becomes the order's id at checkout. So two tabs with the same cart place the same order, and a
tab with an older cart is detected. The stored prices are those the customer saw; they serve to show
that a price has changed, never to charge.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from orders import visitors
from orders.lifecycle.message import MAX_LINES, MAX_QUANTITY, Line, fingerprint
from orders.models import Product

KEY = "cart"
BETWEEN = _("Please enter a quantity from %(least)d to %(most)d.")
AT_MOST = _("You can order at most %(most)d of one product.")
MOST_PRODUCTS = _("An order can have at most %(most)d different products.")


class BadQuantity(ValueError):
    """An invalid quantity; the text is for the customer."""


def read_quantity(text: str, *, least: int = 1) -> int:
    """Return the quantity that a customer typed; raise `BadQuantity` unless it is `least` to 99."""
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 4:
        raise BadQuantity(BETWEEN % {"least": least, "most": MAX_QUANTITY})
    quantity = int(text)
    if quantity > MAX_QUANTITY:
        raise BadQuantity(AT_MOST % {"most": MAX_QUANTITY})
    if quantity < least:
        raise BadQuantity(BETWEEN % {"least": least, "most": MAX_QUANTITY})
    return quantity


@dataclass(frozen=True)
class Removed:
    """The last removal, which can be undone; `price` is in minor units, as seen then."""

    sku: str
    quantity: int
    price: int | None


class Cart:
    """The cart in what a visitor has."""

    def __init__(self, content: MutableMapping[str, Any]) -> None:
        self._content = content
        stored = content.get(KEY)
        self._stored: Mapping[str, Any] = stored if isinstance(stored, dict) else {}
        self.quantities: dict[str, int] = dict(self._stored.get("quantities", {}))
        self.seen: dict[str, int] = dict(self._stored.get("seen", {}))
        removed = self._stored.get("removed")
        self.removed: Removed | None = Removed(*removed) if removed else None

    @property
    def id(self) -> UUID | None:
        """The id of the cart's content; None if empty."""
        return UUID(self._stored["id"]) if self.quantities else None

    @property
    def count(self) -> int:
        """The sum of all quantities."""
        return sum(self.quantities.values())

    def add(self, sku: str, quantity: int, *, price: int | None = None) -> None:
        """Add a product, seen at `price`; raise `BadQuantity` above the limits."""
        total = self.quantities.get(sku, 0) + quantity
        if total > MAX_QUANTITY:
            raise BadQuantity(AT_MOST % {"most": MAX_QUANTITY})
        if sku not in self.quantities and len(self.quantities) >= MAX_LINES:
            raise BadQuantity(MOST_PRODUCTS % {"most": MAX_LINES})
        self.change(sku, total, price=price)

    def change(self, sku: str, quantity: int, *, price: int | None = None) -> None:
        """Set a product's quantity; 0 removes it, and `put_back` undoes that."""
        self.removed = None
        if quantity:
            self.quantities[sku] = quantity
            if price is not None:
                self.seen[sku] = price
        elif sku in self.quantities:
            self.removed = Removed(sku, self.quantities.pop(sku), self.seen.pop(sku, None))
        self._keep()

    def put_back(self) -> Removed | None:
        """Undo the last removal and return it; impossible after another change."""
        back = self.removed
        if back is not None:
            self.add(back.sku, back.quantity, price=back.price)
        return back

    def clear(self) -> None:
        """Empty it."""
        self.quantities, self.seen, self.removed = {}, {}, None
        self._content.pop(KEY, None)

    def take(self, order: UUID, ordered: Mapping[str, int]) -> None:
        """Take out the quantities that were ordered; what was added since stays."""
        if self.id == order:
            self.clear()
            return
        left = {sku: number - ordered.get(sku, 0) for sku, number in self.quantities.items()}
        self.quantities = {sku: number for sku, number in left.items() if number > 0}
        self.removed = None
        self._keep()

    def _keep(self) -> None:
        removed = self.removed
        self._stored = {
            "id": str(uuid4()),
            "quantities": self.quantities,
            "seen": self.seen,
            "removed": removed and (removed.sku, removed.quantity, removed.price),
        }
        self._content[KEY] = self._stored


def cart_of(request: HttpRequest) -> Cart:
    """Return a visitor's cart, to read it."""
    return Cart(visitors.content(request))


@contextmanager
def changing(request: HttpRequest) -> Iterator[Cart]:
    """Change a visitor's cart, under its lock; nothing is changed if this fails."""
    with visitors.changing(request) as content:
        yield Cart(content)


@dataclass(frozen=True)
class PricedLine:
    """A line of a cart with today's product; `seen` is the price when it was added."""

    product: Product
    quantity: int
    seen: int | None = None

    @property
    def sku(self) -> str:
        """The product's SKU."""
        return self.product.sku

    @property
    def price(self) -> int:
        """Price of the line in minor units."""
        return self.product.due * self.quantity

    @property
    def was(self) -> int | None:
        """The unit price when it was added, in minor units, if it has changed."""
        return self.seen if self.seen != self.product.due else None

    def as_line(self) -> Line:
        """Return the order line."""
        product = self.product
        return Line(
            sku=product.sku,
            name=product.name,
            unit_price=product.due,
            quantity=self.quantity,
        )


@dataclass(frozen=True)
class PricedCart:
    """A cart at today's prices; products that are no longer sold are in `gone`, not in `lines`."""

    lines: tuple[PricedLine, ...]
    gone: tuple[Product, ...] = ()

    @property
    def subtotal(self) -> int:
        """The price of its lines in minor units."""
        return sum(line.price for line in self.lines)

    @property
    def changed(self) -> list[PricedLine]:
        """The lines whose price has changed since they were added."""
        return [line for line in self.lines if line.was is not None]

    @property
    def fingerprint(self) -> str:
        """A digest of products, quantities and prices, and of when they come, if not at once."""
        rows = [
            [line.sku, line.quantity, line.product.due, *line.product.terms] for line in self.lines
        ]
        return fingerprint(sorted(rows))


def price(cart: Cart) -> PricedCart:
    """Look up the cart's products (one query; none for an empty cart)."""
    if not cart.quantities:
        return PricedCart(())
    products = list(Product.objects.filter(sku__in=cart.quantities))
    return PricedCart(
        lines=tuple(
            PricedLine(product, cart.quantities[product.sku], cart.seen.get(product.sku))
            for product in products
            if product.available
        ),
        gone=tuple(product for product in products if not product.available),
    )
