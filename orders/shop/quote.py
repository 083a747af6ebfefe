"""What a cart costs with delivery to a country: its lines, shipping, a discount, and the tax in it.

A gift card may pay a part of that, or all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.utils import timezone
from django.utils.translation import gettext as _

from orders.charges import Charges, Discount
from orders.currency import shop_currency
from orders.handling import Handling
from orders.lifecycle import discounts, gift_cards
from orders.lifecycle.sums import Sum, notes, sums
from orders.models import Product

from .cart import PricedCart
from .tariff import Tariff


@dataclass(frozen=True)
class Quote:
    """A cart's price by the tariff of a country; `balance` is what a gift card can pay."""

    cart: PricedCart
    tariff: Tariff
    discount: Discount | None = None
    balance: int = 0

    @property
    def products(self) -> list[Product]:
        """The products of its lines."""
        return [line.product for line in self.cart.lines]

    @property
    def has_gift_cards(self) -> bool:
        """Whether gift cards are bought."""
        return any(product.is_gift_card for product in self.products)

    @cached_property
    def charges(self) -> Charges:
        """Shipping, discount and taxes."""
        classes = {product.sku: product.tax_class for product in self.products}
        emailed = {product.sku for product in self.products if product.is_gift_card}
        return self.tariff.charges(self.cart.lines, classes, self.discount, emailed)

    @cached_property
    def handling(self) -> Handling:
        """How the order differs from a parcel of goods in stock that is paid at once."""
        return handling_of(self.products, gift_card=min(self.balance, self.total))

    @property
    def total(self) -> int:
        """What it costs, in minor units."""
        return self.cart.subtotal + self.charges.extra

    @property
    def to_pay(self) -> int:
        """What is left of that to pay, in minor units."""
        return self.total - self.handling.gift_card

    @property
    def sums(self) -> list[Sum]:
        """How it comes about, in the active language."""
        return sums(self.total, shop_currency(), self.charges, self.handling)

    @property
    def notes(self) -> list[str]:
        """What customers are to know of it, in the active language."""
        return notes(self.handling, timezone.now())

    def discounted(self, code: str, email: str = "") -> Discount:
        """Return the discount of a code; raise `discounts.NotValid` if it cannot be used."""
        if self.has_gift_cards:
            raise discounts.NotValid(_("Discount codes are not for gift cards."))
        return discounts.find(code, self.cart.subtotal, email)

    def payable(self, code: str) -> int:
        """Return what a gift card can pay; raise `gift_cards.NotValid` if it cannot."""
        if self.has_gift_cards:
            raise gift_cards.NotValid(_("Gift cards cannot be bought with gift cards."))
        return gift_cards.find(code)


def handling_of(products: Sequence[Product], gift_card: int = 0) -> Handling:
    """Return how an order of products is handled: the latest release counts for all."""
    releases: list[datetime] = [at for product in products if (at := product.released_at)]
    return Handling(
        gift_card=gift_card,
        emailed=tuple(product.sku for product in products if product.is_gift_card),
        ships=not products or not all(product.is_gift_card for product in products),
        made={
            product.sku: product.made_within_days
            for product in products
            if product.made_within_days
        },
        released_at=max(releases, default=None),
    )
