"""What a customer and staff do with a subscription, each under the lock of its row.

The daily run takes the same lock. An act that no longer fits changes nothing: the page was older.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction

from orders.models import Product, Subscription
from orders.models.subscription import Because, SubscriptionState
from orders.shop.tariff import tariff

from . import letters, placing
from .days import today
from .offers import offer

MOST_AHEAD = timedelta(weeks=26)
CHANGEABLE = (
    "quantity", "weeks", "email", "payment_method", "name", "street", "postcode", "city", "country", "region",
)  # fmt: skip


class Outdated(Exception):
    """The subscription is not as the page showed it; nothing was changed."""


class TooFar(Exception):
    """The next order would be half a year away; nothing was changed."""


@transaction.atomic
def subscribe(id_: UUID, product: Product, price: int, values: Mapping[str, Any]) -> Subscription:
    """Begin a subscription and place its first order, once per id; return it.

    `price` is what the customer agreed to for one. Raises `placement.TooMuch` above the largest total.
    """
    day = today()
    first = {"product_id": product.sku, "price": price, "currency": product.currency}
    row, new = Subscription.objects.get_or_create(
        id=id_, defaults={**values, **first, "next_on": day}
    )
    if new:
        cost = offer(product, price, row.quantity, tariff(row.country))
        placing.place(row, day, cost)
        row.next_on = row.day_if_skipped
        row.save(update_fields=["next_on"])
        letters.post_begun(row, product, cost)
    return row


@transaction.atomic
def skip(id_: UUID, on: Any) -> Subscription:
    """Leave out the order of a day, if that is the next one."""
    row = _locked(id_)
    if not row.active or row.next_on != on:
        raise Outdated
    if row.day_if_skipped > today() + MOST_AHEAD:
        raise TooFar
    row.next_on = row.day_if_skipped
    row.save(update_fields=["next_on"])
    return row


@transaction.atomic
def pause(id_: UUID, because: Because = Because.CUSTOMER, reason: str = "") -> Subscription:
    """Place no orders until it is resumed; a customer is written to unless they asked for it."""
    row = _locked(id_)
    if not row.active:
        raise Outdated
    return _halt(row, SubscriptionState.PAUSED, because, reason)


@transaction.atomic
def end(id_: UUID, because: Because = Because.CUSTOMER, reason: str = "") -> Subscription:
    """Never place an order again; the customer gets a letter that confirms it."""
    row = _locked(id_)
    if row.ended:
        raise Outdated
    return _halt(row, SubscriptionState.ENDED, because, reason)


@transaction.atomic
def resume(id_: UUID, price: int) -> Subscription:
    """Go on at the price of one that the customer was shown, on the next day that fits."""
    row = _locked(id_)
    product = Product.objects.get(sku=row.product_id)
    if row.state != SubscriptionState.PAUSED or price != product.due:
        raise Outdated
    row.state, row.because, row.reason, row.unpaid = SubscriptionState.ACTIVE, "", "", 0
    if price >= row.price:  # a lower one may be so for a while; what was agreed stays the limit
        row.price, row.new_price, row.new_price_from = price, None, None
    row.next_on = max(row.next_on, today() + timedelta(days=1))
    row.save()
    return row


@transaction.atomic
def change(id_: UUID, values: Mapping[str, Any]) -> Subscription:
    """Change quantity, rhythm, address and card of the orders to come."""
    row = _locked(id_)
    if row.ended:
        raise Outdated
    for name in CHANGEABLE:
        setattr(row, name, values[name])
    row.save(update_fields=CHANGEABLE)
    return row


def _halt(
    row: Subscription, state: SubscriptionState, because: Because, reason: str
) -> Subscription:
    row.state, row.because, row.reason = state, because, reason
    row.save(update_fields=["state", "because", "reason"])
    if state == SubscriptionState.ENDED or because != Because.CUSTOMER:
        letters.post_halted(row, Product.objects.get(sku=row.product_id), str(uuid4()))
    return row


def _locked(id_: UUID) -> Subscription:
    return Subscription.objects.select_for_update(no_key=True).get(id=id_)
