"""What delivery to a country costs, and the tax rates there, as the shop's owner set them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from orders.charges import Charges, Discount, Priced, charge
from orders.currency import shop_currency

SHIPPING = "shipping"
# rows, not models: the cart's page and each placement read it; by tax_rate_once and the unique country
TARIFF = f"""
(SELECT '{SHIPPING}' AS kind, price, free_from FROM orders_shippingprice
WHERE country IN (%(country)s, '') AND currency = %(currency)s ORDER BY country DESC LIMIT 1)
UNION ALL
SELECT tax_class, percent, NULL FROM orders_taxrate WHERE country = %(country)s
"""  # noqa: S608 - put together from constants


@dataclass(frozen=True, kw_only=True)
class Tariff:
    """Shipping and tax of a country; `rates` by tax class, and `free_from` the goods' price."""

    country: str
    shipping: int = 0
    free_from: int | None = None
    rates: Mapping[str, int]

    def charges(
        self,
        lines: Sequence[Priced],
        classes: Mapping[str, str],
        discount: Discount | None = None,
        emailed: Collection[str] = (),
    ) -> Charges:
        """Return the charges of lines; `classes` has the tax class of each product.

        What is e-mailed needs no delivery, and makes that of other goods no cheaper.
        """
        shipped = [line.price for line in lines if line.sku not in emailed]
        left = sum(shipped) - (discount.of(sum(shipped)) if discount else 0)
        free = not shipped or (self.free_from is not None and left >= self.free_from)
        return charge(
            lines,
            shipping=0 if free else self.shipping,
            discount=discount,
            rates={sku: self.rates.get(tax_class, 0) for sku, tax_class in classes.items()},
            emailed=emailed,
        )


def tariff(country: str) -> Tariff:
    """Return the tariff of a country (one query, by unique constraints)."""
    with connection.cursor() as cursor:
        cursor.execute(TARIFF, {"country": country, "currency": shop_currency()})
        rows = cursor.fetchall()
    shipping = [(price, free_from) for kind, price, free_from in rows if kind == SHIPPING]
    price, free_from = shipping[0] if shipping else (0, None)
    return Tariff(
        country=country,
        shipping=price,
        free_from=free_from,
        rates={kind: percent for kind, percent, _ in rows if kind != SHIPPING},
    )
