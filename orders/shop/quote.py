"""What a cart costs with delivery to a country: its lines, shipping, a discount, and the tax in it."""

from dataclasses import dataclass
from functools import cached_property

from orders.charges import Charges, Discount
from orders.currency import shop_currency
from orders.lifecycle.sums import Sum, sums

from .cart import PricedCart
from .tariff import Tariff


@dataclass(frozen=True)
class Quote:
    """A cart's price by the tariff of a country."""

    cart: PricedCart
    tariff: Tariff
    discount: Discount | None = None

    @cached_property
    def charges(self) -> Charges:
        """Shipping, discount and taxes."""
        classes = {line.sku: line.product.tax_class for line in self.cart.lines}
        return self.tariff.charges(self.cart.lines, classes, self.discount)

    @property
    def total(self) -> int:
        """What is to be paid, in minor units."""
        return self.cart.subtotal + self.charges.extra

    @property
    def sums(self) -> list[Sum]:
        """How it comes about, in the active language."""
        return sums(self.total, shop_currency(), self.charges)
