"""The daily run: places the orders that are due, and announces those that are near.

A schedule submits a task each day. As the shop hears of it, it serves a batch in that transaction, reports
what was done as the task's result, and submits another task if more is due. So a crash anywhere loses and
repeats nothing, and operators see each run. Placing signs links, which only processes with the shop's key can
do: the one that receives its status messages is one of them.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from uuid import NAMESPACE_URL, UUID, uuid5

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import F, Q, QuerySet

from orchestration import api
from orders.lifecycle.message import APPLICATION
from orders.models import Product, Subscription
from orders.models.subscription import SubscriptionState
from orders.shop.tariff import tariff

from . import letters, placing, prices
from .days import today
from .offers import Tariffs, due_offer

logger = logging.getLogger(__name__)

RENEWAL = "renew_subscriptions"
RENEWED = "renewed"  # the signal that ends a task
NOT_PLACED = "not_placed"
BATCH = 50  # subscriptions: a transaction takes less than a second


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What was done; `failed` are the subscriptions whose orders could not be placed."""

    counts: Counter[str]
    failed: Sequence[UUID]
    more: bool


def receive(messages: Sequence[api.Status]) -> None:
    """Serve a batch for each task that has begun."""
    for message in messages:
        if message.workflow == RENEWAL and message.kind is api.StatusKind.RECEIVED:
            _report(message.reference, serve(today()))


@transaction.atomic
def serve(day: date, most: int = BATCH) -> Batch:
    """Place and announce the orders of up to `most` subscriptions, and inform of as many prices."""
    counts: Counter[str] = Counter(announced=prices.announce(day, most))
    failed: list[UUID] = []
    rows = list(waiting(day).select_for_update(no_key=True)[:most])
    products = Product.objects.in_bulk({row.product_id for row in rows})
    tariffs = cache(tariff)
    for row in rows:
        try:
            with transaction.atomic():
                counts[_serve_one(row, products[row.product_id], day, tariffs)] += 1
        except OperationalError:  # the database is busy or away: the whole batch is tried again
            raise
        except Exception:  # one must not hold up the others; the task's error names it
            logger.exception("the order of subscription %s could not be placed", row.id)
            Subscription.objects.filter(id=row.id).update(failed_on=day)
            failed.append(row.id)
    more = counts["announced"] == most or (bool(rows) and waiting(day).exists())
    return Batch(counts=counts, failed=failed, more=more)


def waiting(day: date) -> QuerySet[Subscription]:
    """Return what is to be served on a day, the oldest first; by the index subscription_due."""
    near = day + timedelta(days=settings.SUBSCRIPTION_REMIND_DAYS)
    unknown = Q(reminded_on=None) | ~Q(reminded_on=F("next_on"))
    tried = Q(failed_on=day)
    active = Subscription.objects.filter(state=SubscriptionState.ACTIVE, next_on__lte=near)
    return active.filter(Q(next_on__lte=day) | unknown).exclude(tried).order_by("next_on", "id")


def _serve_one(row: Subscription, product: Product, day: date, tariffs: Tariffs) -> str:
    """Do what is due for a subscription; return what that was."""
    if row.next_on > day:
        letters.post_reminder(row, product, due_offer(row, product, row.next_on, tariffs))
        row.reminded_on = row.next_on
        row.save(update_fields=["reminded_on"])
        return "reminded"
    due_on, row.next_on = row.next_on, row.day_after(day)
    if product.available and not product.terms and product.currency == row.currency:
        placing.place(row, due_on, due_offer(row, product, day, tariffs))
        row.price = row.agreed_on(day)
        if row.price == row.new_price:
            row.new_price = row.new_price_from = None
        done = "placed"
    else:
        letters.post_passed_over(row, product, due_on)
        done = "passed"
    row.failed_on = None
    row.save(update_fields=["next_on", "price", "new_price", "new_price_from", "failed_on"])
    return done


def _report(reference: str, batch: Batch) -> None:
    """End the task with what was done, and submit another one if more is due."""
    if batch.more:
        first, _, number = reference.partition("#")
        again = f"{first}#{int(number or 1) + 1}"
        api.submit(RENEWAL, reference=again, data={}, reply_to=APPLICATION)
    ends = {"result": dict(batch.counts)} if not batch.failed else {
        "refused": NOT_PLACED,
        "message": "could not be placed: " + ", ".join(map(str, batch.failed)),
    }  # fmt: skip
    id_ = uuid5(NAMESPACE_URL, f"{RENEWAL}/{reference}")
    api.complete(RENEWAL, reference, RENEWED, **ends, actor=APPLICATION, id=id_)
