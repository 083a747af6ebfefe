"""The part of an order's payment that stands for replacements, over all of its returns.

A replacement is paid by the order that was paid first, its payer: also one for a replacement. All of it is
read and changed under the lock of the payer's row, with the refunds: together they are never above what was
taken. What a replacement costs goes back at its payer.
"""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import F, Sum

from orders.handling import from_json
from orders.models import Exchange, Order


def in_effect(payer: Order) -> int:
    """Return what an order's payment stands for beside its own goods (one query, by its index)."""
    held = payer.exchanges.aggregate(sum=Sum(F("amount") - F("returned")))["sum"]
    return held or 0


def of(order: Order) -> Exchange | None:
    """Return what pays an order that is a replacement (no query for others)."""
    if not from_json(order.handling).exchange:
        return None
    return Exchange.objects.select_related("payer").get(order=order.id)


def release(held: Exchange, amount: int) -> None:
    """Have the payment stand for less of a replacement, under the payer's lock."""
    Exchange.objects.filter(order=held.order).update(returned=F("returned") + amount)


def locked(orders: Iterable[UUID]) -> dict[UUID, Order]:
    """Lock orders and those that paid them, in the order of their ids; return all by id."""
    ids = set(orders)
    ids |= set(Exchange.objects.filter(order__in=ids).values_list("payer", flat=True))
    rows = Order.objects.filter(id__in=ids).order_by("id").select_for_update(no_key=True)
    return {row.id: row for row in rows}
