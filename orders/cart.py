"""The cart: product ids, quantities and prices in the session, and an id that changes with it.

The id becomes the order's id when the cart is checked out. So two tabs with the same cart place the
same order, and a tab with an older cart is found out. The prices are those that the customer saw
when they put something in: only to tell them when one has changed, never to charge them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.contrib.sessions.backends.base import SessionBase
from django.utils.translation import gettext_lazy as _

from .message import MOST_LINES, MOST_PER_LINE, Line, fingerprint
from .models import Product

KEY = "cart"
FROM_TO = _("Please enter a quantity from %(least)d to %(most)d.")
AT_MOST = _("You can order at most %(most)d of one product.")
MOST_PRODUCTS = _("An order can have at most %(most)d different products.")


class BadQuantity(ValueError):
    """A quantity that cannot be ordered; its text tells the customer why."""


def read_quantity(text: str, *, least: int = 1) -> int:
    """Return the quantity a customer typed; raise `BadQuantity` for anything but `least` to 99."""
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 4:
        raise BadQuantity(FROM_TO % {"least": least, "most": MOST_PER_LINE})
    quantity = int(text)
    if quantity > MOST_PER_LINE:
        raise BadQuantity(AT_MOST % {"most": MOST_PER_LINE})
    if quantity < least:
        raise BadQuantity(FROM_TO % {"least": least, "most": MOST_PER_LINE})
    return quantity


@dataclass(frozen=True)
class Removed:
    """What was taken out last, so that it can be put back; `price` in minor units, as seen then."""

    sku: str
    quantity: int
    price: int | None


class Cart:
    """The cart of one session."""

    def __init__(self, session: SessionBase) -> None:
        self._session = session
        kept = session.get(KEY)
        self._kept: Mapping[str, Any] = kept if isinstance(kept, dict) else {}
        self.quantities: dict[str, int] = dict(self._kept.get("quantities", {}))
        self.seen: dict[str, int] = dict(self._kept.get("seen", {}))
        removed = self._kept.get("removed")
        self.removed: Removed | None = Removed(*removed) if removed else None

    @property
    def id(self) -> UUID | None:
        """The id of the cart as it is; None while it is empty."""
        return UUID(self._kept["id"]) if self.quantities else None

    @property
    def count(self) -> int:
        """How many pieces are in it."""
        return sum(self.quantities.values())

    def add(self, sku: str, quantity: int, *, price: int | None = None) -> None:
        """Put more of a product in, seen at `price`; raise `BadQuantity` if that is too much."""
        wanted = self.quantities.get(sku, 0) + quantity
        if wanted > MOST_PER_LINE:
            raise BadQuantity(AT_MOST % {"most": MOST_PER_LINE})
        if sku not in self.quantities and len(self.quantities) >= MOST_LINES:
            raise BadQuantity(MOST_PRODUCTS % {"most": MOST_LINES})
        self.change(sku, wanted, price=price)

    def change(self, sku: str, quantity: int, *, price: int | None = None) -> None:
        """Set how many of a product are in it; 0 takes it out, until `put_back`."""
        self.removed = None
        if quantity:
            self.quantities[sku] = quantity
            if price is not None:
                self.seen[sku] = price
        elif sku in self.quantities:
            self.removed = Removed(sku, self.quantities.pop(sku), self.seen.pop(sku, None))
        self._keep()

    def put_back(self) -> Removed | None:
        """Undo the last removal, reporting what came back; once anything else changed it stays."""
        back = self.removed
        if back is not None:
            self.add(back.sku, back.quantity, price=back.price)
        return back

    def clear(self) -> None:
        """Empty it."""
        self.quantities, self.seen, self.removed = {}, {}, None
        self._session.pop(KEY, None)

    def _keep(self) -> None:
        removed = self.removed
        self._kept = {
            "id": str(uuid4()),
            "quantities": self.quantities,
            "seen": self.seen,
            "removed": removed and (removed.sku, removed.quantity, removed.price),
        }
        self._session[KEY] = self._kept


@dataclass(frozen=True)
class PricedLine:
    """A line of a cart with its product as it is today; `seen` is the price when it was put in."""

    product: Product
    quantity: int
    seen: int | None = None

    @property
    def price(self) -> int:
        """What the line costs, in minor units."""
        return self.product.price * self.quantity

    @property
    def was(self) -> int | None:
        """The price of one when it was put in, in minor units, if it has changed since."""
        return self.seen if self.seen != self.product.price else None

    def as_line(self) -> Line:
        """Return the line as it goes into an order."""
        product = self.product
        return Line(
            sku=product.sku,
            name=product.name,
            unit_price=product.price,
            quantity=self.quantity,
        )


@dataclass(frozen=True)
class Priced:
    """A cart at today's prices; what is not sold any more is no line of it but `gone`."""

    lines: tuple[PricedLine, ...]
    gone: tuple[Product, ...] = ()

    @property
    def total(self) -> int:
        """What it all costs, in minor units."""
        return sum(line.price for line in self.lines)

    @property
    def changed(self) -> list[PricedLine]:
        """The lines whose price has changed since they were put in."""
        return [line for line in self.lines if line.was is not None]

    @property
    def fingerprint(self) -> str:
        """Identify what is bought, and at which prices."""
        rows = [[line.product.sku, line.quantity, line.product.price] for line in self.lines]
        return fingerprint(sorted(rows))


def price(cart: Cart) -> Priced:
    """Look up what is in the cart (one query, none for an empty one)."""
    if not cart.quantities:
        return Priced(())
    products = list(Product.objects.filter(sku__in=cart.quantities))
    return Priced(
        lines=tuple(
            PricedLine(one, cart.quantities[one.sku], cart.seen.get(one.sku))
            for one in products
            if one.available
        ),
        gone=tuple(one for one in products if not one.available),
    )
