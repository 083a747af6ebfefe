"""Higher prices: a subscriber is written to before one applies to them."""

from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from orders.currency import shop_currency
from orders.models import Product, Subscription

from . import letters

# by the index subscription_price: few products have subscriptions whose price is lower
RISEN = """
SELECT s.id FROM unnest(%(skus)s::text[], %(prices)s::int[]) AS p (sku, price)
JOIN orders_subscription s ON s.product_id = p.sku AND s.state = 'active' AND s.price < p.price
WHERE s.currency = %(currency)s AND coalesce(s.new_price, 0) < p.price
LIMIT %(most)s FOR NO KEY UPDATE OF s
"""


@transaction.atomic
def announce(day: date, most: int) -> int:
    """Write to subscribers whose product costs more than they know; return how many, up to `most`.

    The higher price applies after the notice; one that rises again meanwhile has a notice of its own.
    """
    products = {product.sku: product for product in Product.objects.sold()}
    starts_on = day + timedelta(days=settings.SUBSCRIPTION_PRICE_NOTICE_DAYS)
    ids = _risen(products, most)
    for row in Subscription.objects.filter(id__in=ids):
        product = products[row.product_id]
        row.price = row.agreed_on(day)
        row.new_price, row.new_price_from = product.due, starts_on
        row.save(update_fields=["price", "new_price", "new_price_from"])
        letters.post_price(row, product, product.due, starts_on)
    return len(ids)


def _risen(products: dict[str, Product], most: int) -> list[UUID]:
    values: dict[str, Any] = {
        "skus": list(products),
        "prices": [product.due for product in products.values()],
        "currency": shop_currency(),
        "most": most,
    }
    with connection.cursor() as cursor:
        cursor.execute(RISEN, values)
        return [id_ for (id_,) in cursor.fetchall()]
