"""Refunds of parts of an order: never more than was taken, over all of them and what was exchanged.

A refund is noted under the lock of its order's row, in the transaction that posts its task. One whose task
is undone frees its amount again. What a replacement cost is paid back by the order that paid it.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Sum

from orchestration import api
from orders.models import Order, Refund
from orders.models.order import OrderStatus
from orders.models.refund import RefundState

from . import exchanged, follow_up, gift_cards, gift_issue, owner_letters, snapshots
from .message import APPLICATION
from .paying import payment_id

REFUND_WORKFLOW = "refund_order"
STATES = {
    api.StatusKind.COMPLETED: RefundState.PAID,
    api.StatusKind.UNDONE: RefundState.UNDONE,
}
# Once per refund, however often its message comes; orders are locked in the order of their ids.
SETTLE = """
WITH incoming AS (
    SELECT * FROM unnest(%(refunds)s::uuid[], %(states)s::text[]) AS incoming (id, state)
), locked AS MATERIALIZED (
    SELECT o.id FROM orders_order o WHERE o.id IN (
        SELECT r.order_id FROM orders_refund r JOIN incoming USING (id))
    ORDER BY o.id FOR NO KEY UPDATE
), settled AS (
    UPDATE orders_refund r SET state = incoming.state
    FROM incoming, locked
    WHERE r.id = incoming.id AND r.order_id = locked.id AND r.state = 'asked'
    RETURNING r.order_id, r.amount, r.state, r.overpaid
)
UPDATE orders_order o SET refunded = o.refunded + s.amount
FROM (SELECT order_id, sum(amount) AS amount FROM settled
    WHERE state = 'paid' AND NOT overpaid GROUP BY order_id) s
WHERE o.id = s.order_id
"""


class NotRefundable(Exception):
    """Nothing can be paid back: the order is not completed."""


class TooMuch(Exception):
    """More would be paid back than was taken; `left` is what may be, in minor units."""

    def __init__(self, left: int) -> None:
        super().__init__(left)
        self.left = left


def left_of(order: Order) -> int:
    """Return what may still be paid back or exchanged (two queries, three with gift cards)."""
    if not _is_completed(order):
        return 0
    if held := exchanged.of(order):
        return held.left
    known, _on_card = _noted(order)
    # what was paid with gift cards that it bought is not given back as money
    return order.total - gift_issue.spent(order) - known


def _is_completed(order: Order) -> bool:
    """Return whether an order is completed, and so paid."""
    return order.status == OrderStatus.CONFIRMED


def _noted(order: Order) -> tuple[int, int]:
    """Return the sum of an order's refunds and exchanges, and of the parts that go to its gift card."""
    known = order.refunds.exclude(state=RefundState.UNDONE).exclude(overpaid=True)
    sums = known.aggregate(all=Sum("amount"), on_card=Sum("on_card"))
    return (sums["all"] or 0) + exchanged.in_effect(order), sums["on_card"] or 0


@transaction.atomic
def refund(order_id: UUID, amount: int, reason: str, *, id_: UUID, by: int | None) -> Refund:
    """Note a refund of `amount` in minor units, and post its task; `id_` once. Returns the refund.

    What a gift card paid goes back to it first, and to the payment only beyond that: so a card does not
    become money.
    Raises `NotRefundable`, or `TooMuch` above what is left. An order that is under way is cancelled
    instead, which returns all of it.
    """
    order = exchanged.locked([order_id])[order_id]
    held = exchanged.of(order)
    payer = held.payer if held else order
    if same := Refund.objects.filter(id=id_, order=payer).first():
        return same
    if not _is_completed(order):
        raise NotRefundable
    if amount > (left := left_of(order)):
        raise TooMuch(left)
    if held:
        exchanged.release(held, amount)
    return pay_back(payer, amount, reason, id_=id_, by=by)


def pay_back(order: Order, amount: int, reason: str, *, id_: UUID, by: int | None) -> Refund:
    """Note and post a refund of a locked order that was paid; this much of it is left."""
    progress = snapshots.of(order)
    if progress is None:
        raise NotRefundable
    known, known_on_card = _noted(order)
    if lacks := gift_issue.withdraw_until(order, known + amount):  # spent at this moment
        raise TooMuch(amount - lacks)
    on_card = min(amount, order.total - order.to_pay - known_on_card)
    new = Refund.objects.create(
        id=id_, order=order, amount=amount, on_card=on_card, reason=reason, by_id=by
    )
    _post(new, progress)
    return new


def return_overpaid(order: Order, amount: int, reason: str, *, id_: UUID) -> None:
    """Pay back to a locked order what a transfer was above its total; `id_` once."""
    progress = snapshots.of(order)
    if progress is None or Refund.objects.filter(id=id_).exists():
        return
    new = Refund.objects.create(id=id_, order=order, amount=amount, overpaid=True, reason=reason)
    _post(new, progress)


def _post(refund: Refund, progress: api.Progress) -> None:
    order, amount, on_card = refund.order, refund.amount, refund.on_card
    data: dict[str, Any] = {
        "order": str(order.id),
        "number": order.number,
        "payment": payment_id(progress),
        "amount": amount - on_card,
        "currency": order.currency,
        "email": order.email,
        "mail": owner_letters.refunded(order, amount, refund.reason, on_card).as_json(),
    }
    follow_up.post(order.id, REFUND_WORKFLOW, refund.id, data, reply_to=APPLICATION)


def refund_up_to(order: Order, amount: int, reason: str, *, id_: UUID) -> int:
    """Refund this much of a locked order, or what is left of it; return how much, in minor units."""
    part = min(amount, max(0, left_of(order)))
    if part:
        refund(order.id, part, reason, id_=id_, by=None)
    return part


def receive(messages: Sequence[api.Status]) -> Sequence[str]:
    """Settle the refunds whose tasks have ended, by their status messages; return their ids.

    `match_cards` follows once all orders are locked that these messages are about.
    """
    ended = {
        message.reference: STATES[message.kind]
        for message in messages
        if message.workflow == REFUND_WORKFLOW and message.kind in STATES
    }
    if ended:
        columns = {"refunds": list(ended), "states": [state.value for state in ended.values()]}
        with connection.cursor() as cursor:
            cursor.execute(SETTLE, columns)
    return list(ended)


def match_cards(ended: Sequence[str]) -> None:
    """Have gift cards stand as refunds say that have ended (one query for orders without any)."""
    if not ended:
        return
    orders = Order.objects.filter(refunds__id__in=ended, handling__isnull=False).distinct()
    for order in orders.order_by("id"):
        paid = order.refunds.filter(state=RefundState.PAID).aggregate(sum=Sum("on_card"))["sum"]
        gift_cards.return_until(order.id, paid or 0)
        known, _on_card = _noted(order)
        gift_issue.withdraw_until(order, known)
