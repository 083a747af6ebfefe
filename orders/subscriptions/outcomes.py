"""How the orders of subscriptions end: the card that is remembered, and the pause after unpaid ones."""

from collections.abc import Sequence

from django.conf import settings

from orchestration.api import Status, StatusKind
from orders.lifecycle.message import WORKFLOW
from orders.lifecycle.paying import why_cancelled
from orders.models import Order, Product, Subscription, SubscriptionOrder
from orders.models.subscription import Because, Paid, SubscriptionState

from . import letters

ENDS = {StatusKind.COMPLETED, StatusKind.UNDONE}


def receive(messages: Sequence[Status]) -> None:
    """Note how orders of subscriptions ended, each once; others cost one query a batch."""
    ended = {
        message.reference: message
        for message in sorted(messages, key=lambda message: message.number)
        if message.workflow == WORKFLOW and message.kind in ENDS
    }
    if not ended:
        return
    mine = SubscriptionOrder.objects.filter(order__in=ended, paid=Paid.OPEN)
    if not (concerned := {order.subscription_id for order in mine}):
        return
    # their rows in one order, and only then their orders: another receiver may have noted these
    locked = Subscription.objects.select_for_update(no_key=True).order_by("id")
    rows = {row.id: row for row in locked.filter(id__in=concerned)}
    methods = dict(Order.objects.filter(id__in=ended).values_list("id", "payment_method"))
    for order in mine.all().order_by("on"):
        row, message = rows[order.subscription_id], ended[str(order.order)]
        if message.kind is StatusKind.COMPLETED:
            _paid(row, order, methods[order.order])
        else:
            _undone(row, order, message)


def _paid(row: Subscription, order: SubscriptionOrder, method: str) -> None:
    """Remember the card that an order was paid with, unless the customer has chosen one since."""
    if row.payment_method == order.payment_method:
        row.payment_method = method
    row.unpaid = 0
    row.save(update_fields=["payment_method", "unpaid"])
    _note(order, Paid.PAID)


def _undone(row: Subscription, order: SubscriptionOrder, message: Status) -> None:
    """Count an order that was not paid; pause its subscription after too many in a row."""
    unpaid = bool(message.progress and why_cancelled(message.progress))
    _note(order, Paid.UNPAID if unpaid else Paid.CANCELLED)
    if not unpaid:
        return
    row.unpaid += 1
    if row.active and row.unpaid >= settings.SUBSCRIPTION_UNPAID:
        row.state, row.because, row.reason = SubscriptionState.PAUSED, Because.UNPAID, ""
        letters.post_halted(row, Product.objects.get(sku=row.product_id), str(order.order))
    row.save(update_fields=["unpaid", "state", "because", "reason"])


def _note(order: SubscriptionOrder, paid: Paid) -> None:
    order.paid = paid
    order.save(update_fields=["paid"])
