"""What customers do about their own orders: another card, less goods, wait, or cancel.

Each act is a request to the engine. It is checked by the shop's own rows, noted on the order and
posted in one transaction; the engine carries it out later, and `accepted` changes the order's rows in
the engine's transaction, so that both change or neither. Each request names the attempt that the
customer saw fail, and one at a time is on its way: a second click changes nothing.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models.functions import Now

from orchestration import api

from . import snapshots
from .asking import Act, Asked
from .letters import Recipient, confirmation
from .message import WORKFLOW, Line, fingerprint
from .models import Order, OrderLine, Placement
from .tracking import CARD, STOCK, mends

ACTOR = "customer"
PATIENCE = timedelta(days=14)  # for which an order waits for goods
EVERY = 600.0  # seconds between two looks whether they are back


class AllGone(Exception):
    """Nothing would be left of the order: that is a cancellation."""


@transaction.atomic
def other_card(order_id: UUID, attempt: int, card: str) -> api.Refusal | None:
    """Ask for the payment to be tried with another card; return why not, or None when it is asked."""
    order = _lock(order_id)
    if not _offered(order, CARD, attempt):
        return api.Refusal.CHANGED
    amendment = api.Amendment(request={"payment_method": card, "amount": order.total})
    asked = Asked(id=uuid4(), act=Act.CARD)
    _resubmit(order, asked, CARD, attempt, "another card", amendment, {"card": card})
    return None


@transaction.atomic
def leave_out(order_id: UUID, attempt: int, sku: str) -> api.Refusal | None:
    """Ask to go on without a product; return why not, or None when it is asked.

    Raises `AllGone` if it is the only one. A card may be held for more than the new total: of that,
    only the new total is taken.
    """
    order = _lock(order_id)
    if not _offered(order, STOCK, attempt):
        return api.Refusal.CHANGED
    lines = [
        Line(sku=line.sku, name=line.name, unit_price=line.unit_price, quantity=line.quantity)
        for line in order.lines.exclude(sku=sku).order_by("id")
    ]
    if not lines:
        raise AllGone
    total = sum(line.price for line in lines)
    to = Recipient(order=order.id, name=order.name, language=order.language)
    changed = {
        "lines": [line.as_json() for line in lines],
        "total": total,
        "confirmation": confirmation(to, total, order.currency).as_json(),
    }
    amendment = api.Amendment(request={"lines": _wanted(lines)}, data=changed)
    asked = Asked(id=uuid4(), act=Act.LEAVE_OUT)
    note = {"sku": sku, "total": total}
    _resubmit(order, asked, STOCK, attempt, f"without {sku}", amendment, note)
    return None


def may_wait(order_id: UUID) -> bool:
    """Return whether an order can wait for its goods: not one of which an application hears, not us."""
    return not Placement.objects.filter(order=order_id).exclude(application="").exists()


@transaction.atomic
def wait_for_stock(order_id: UUID, attempt: int) -> api.Refusal | None:
    """Ask to keep the order until its goods are back, for two weeks at most; return why not, or None."""
    order = _lock(order_id)
    if not _offered(order, STOCK, attempt):
        return api.Refusal.CHANGED
    if not may_wait(order_id):
        return api.Refusal.INVALID
    later = api.Amendment(wait=EVERY, patience=PATIENCE.total_seconds())
    asked = Asked(id=uuid4(), act=Act.WAIT)
    _resubmit(order, asked, STOCK, attempt, "waits until it is back", later, {})
    return None


@transaction.atomic
def cancel(
    order_id: UUID, *, actor: str = ACTOR, reason: str = "the customer cancelled it"
) -> api.Refusal | None:
    """Ask for the order to be undone; return why not, or None when it is asked."""
    order = _lock(order_id)
    if refusal := _undoable(order):
        return refusal
    asked = Asked(id=uuid4(), act=Act.CANCEL)
    api.request_undo(WORKFLOW, str(order.id), actor=actor, reason=reason, id=asked.id)
    _note(order, asked)
    return None


def accepted(requests: Sequence[api.Accepted]) -> None:
    """Change the orders' rows as requests are accepted: part of the engine's transaction.

    It runs in the submission process, which has the engine's tables at hand.
    """
    for one in requests:
        if note := one.note:
            _apply(_lock(UUID(one.reference)), note)


def _apply(order: Order, note: Mapping[str, Any]) -> None:
    match note["act"]:
        case Act.CARD:
            order.payment_method = note["card"]
        case Act.LEAVE_OUT:
            OrderLine.objects.filter(order=order, sku=note["sku"]).delete()
            order.total, order.waits_until = note["total"], None
            task = api.progress(WORKFLOW, str(order.id))
            order.fingerprint = fingerprint(task.data if task else {})
        case Act.WAIT:
            order.waits_until = Now() + PATIENCE
    order.save(update_fields=["payment_method", "total", "fingerprint", "waits_until"])


def _lock(order_id: UUID) -> Order:
    return Order.objects.select_for_update(no_key=True).get(id=order_id)


def _offered(order: Order, step: str, attempt: int) -> bool:
    """Return whether it is for the customer to mend a step: all else that fails is for our staff."""
    if order.request and order.request.pending:
        return False
    offers = mends(snapshots.of(order))
    return any((offer.step, offer.attempt) == (step, attempt) for offer in offers)


def _undoable(order: Order) -> api.Refusal | None:
    """Return why a request to undo an order would be refused, as far as is known here."""
    asked, progress = order.request, snapshots.of(order)
    if asked and asked.pending:
        return api.Refusal.NOT_UNDOABLE if asked.act is Act.CANCEL else api.Refusal.CHANGED
    if progress is None:
        return api.Refusal.CHANGED
    if progress.state in {api.TaskState.UNDOING, api.TaskState.UNDONE}:
        return api.Refusal.NOT_UNDOABLE
    return None if progress.undoable else api.Refusal.IRREVERSIBLE


def _resubmit(
    order: Order,
    asked: Asked,
    step: str,
    attempt: int,
    reason: str,
    amendment: api.Amendment,
    note: dict[str, Any],
) -> None:
    api.request_resubmit(
        WORKFLOW,
        str(order.id),
        step,
        attempt=attempt,
        actor=ACTOR,
        reason=reason,
        id=asked.id,
        amendment=amendment,
        note={"act": asked.act, **note},
    )
    _note(order, asked)


def _note(order: Order, asked: Asked) -> None:
    order.asked = asked.as_json()
    order.save(update_fields=["asked"])


def _wanted(lines: list[Line]) -> list[dict[str, str | int]]:
    return [line.as_json() for line in lines]
