"""What can be had for goods that come back: products in stock, at the prices of now."""

from collections.abc import Mapping

from orders.lifecycle.exchange_offers import Wish
from orders.lifecycle.message import Line
from orders.models import Product
from orders.models.product import Delivery, Sold

from .quote import handling_of
from .tariff import tariff


class NotOffered(Exception):
    """A product, by its `sku`, cannot be had for what comes back: it is not sold, or sold out."""

    def __init__(self, sku: str) -> None:
        super().__init__(sku)
        self.sku = sku


def offered() -> Sold:
    """Return the products that can be had: no gift cards, as these are money."""
    return Product.objects.available().filter(delivery=Delivery.PARCEL)


def wish(quantities: Mapping[str, int], country: str) -> Wish:
    """Return a wish with delivery to a country (two queries); raise `NotOffered`."""
    products = {product.sku: product for product in offered().filter(sku__in=quantities)}
    for sku in quantities:
        if sku not in products:
            raise NotOffered(sku)
    rates = tariff(country).rates
    return Wish(
        lines=[
            Line(sku=sku, name=products[sku].name, unit_price=products[sku].due, quantity=quantity)
            for sku, quantity in quantities.items()
        ],
        rates={sku: rates.get(product.tax_class, 0) for sku, product in products.items()},
        handling=handling_of(list(products.values())),
    )
