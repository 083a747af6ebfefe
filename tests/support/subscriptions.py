"""Subscriptions of tests, and what is to be seen of them."""

from datetime import date, timedelta
from uuid import uuid4

from orders.models import Order, Product, Subscription, SubscriptionOrder
from orders.subscriptions import acts
from orders.subscriptions.days import today
from tests.support.customers import confirmed
from tests.support.shop import posted, products

DAY = 86_400
ADDRESS = {
    "name": "Ada Lovelace", "street": "Rue de Lyon 12", "postcode": "1203", "city": "Genève",
    "country": "CH", "region": "",
}  # fmt: skip


def shelf() -> None:
    """Have two products that can be subscribed to, sku-0 at 10.00 and sku-1 at 11.00, and one that cannot."""
    products()
    Product.objects.filter(sku__in=["sku-0", "sku-1"]).update(subscribable=True)


def subscribed(customer=None, sku="sku-0", **values) -> Subscription:
    """Return a new subscription to two of a product every two weeks, whose first order is placed."""
    product = Product.objects.get(sku=sku)
    known = {
        "customer": customer or confirmed(f"{uuid4().hex}@example.org"),
        "email": "ada@example.org", "quantity": 2, "weeks": 2, "language": "en",
        "payment_method": "pm_card_visa", **ADDRESS,
    }  # fmt: skip
    return acts.subscribe(uuid4(), product, product.due, {**known, **values})


def placed_on(of: Subscription) -> list[int]:
    """Return on which days after its first one its orders were due."""
    days = list(
        SubscriptionOrder.objects.filter(subscription=of)
        .order_by("on")
        .values_list("on", flat=True)
    )
    return [(day - days[0]).days for day in days]


def orders_of(of: Subscription) -> list[Order]:
    """Return its orders, the oldest first."""
    ids = SubscriptionOrder.objects.filter(subscription=of).order_by("on")
    return [Order.objects.get(id=id_) for id_ in ids.values_list("order", flat=True)]


def letters(of: Subscription, kind: str) -> list[str]:
    """Return the texts of its letters of a kind, the oldest first."""
    return [mail["text"] for mail in posted(f"{kind}") if str(of.id) in mail["text"]]


def from_now(days: int) -> date:
    """Return a day of the shop."""
    return today() + timedelta(days=days)
