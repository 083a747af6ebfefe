"""What an order of a subscription costs: its price of one, with today's shipping and tax."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from orders.charges import Charges
from orders.lifecycle.message import Line
from orders.lifecycle.sums import Sum, sums
from orders.models import Product, Subscription
from orders.shop.tariff import Tariff

Tariffs = Callable[[str], Tariff]  # by country


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A line and what comes to it; amounts are in minor units."""

    line: Line
    charges: Charges
    currency: str

    @property
    def total(self) -> int:
        """What is to be paid."""
        return self.line.price + self.charges.extra

    @property
    def sums(self) -> list[Sum]:
        """How it comes about, in the active language."""
        return sums(self.total, self.currency, self.charges)


def offer(product: Product, unit_price: int, quantity: int, tariff: Tariff) -> Offer:
    """Return what a quantity of a product costs with delivery to the country of a tariff."""
    line = Line(sku=product.sku, name=product.name, unit_price=unit_price, quantity=quantity)
    charges = tariff.charges([line], {product.sku: product.tax_class})
    return Offer(line=line, charges=charges, currency=product.currency)


def unit_price(of: Subscription, product: Product, day: date) -> int:
    """Return the price of one on a day: that of the shop, and no more than was agreed."""
    return min(product.due, of.agreed_on(day))


def due_offer(of: Subscription, product: Product, day: date, tariffs: Tariffs) -> Offer:
    """Return what an order of a subscription costs on a day, by the prices of now."""
    return offer(product, unit_price(of, product, day), of.quantity, tariffs(of.country))
