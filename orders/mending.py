"""What customers do about their own orders: another card, less goods, wait, or cancel.

Each act locks the order first, then its task, as the receiver of status messages does; and each
names the attempt that the customer saw fail, so that a second click finds it done already.
"""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from orchestration import api

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
    """Have the payment tried with another card; return why not, or None when it will be."""
    order = _lock(order_id)
    if not _offered(order, CARD, attempt):
        return api.Refusal.CHANGED
    refusal = _resubmit(
        order,
        CARD,
        attempt,
        "another card",
        api.Amendment(request={"payment_method": card, "amount": order.total}),
    )
    if refusal is None:
        order.payment_method = card
        order.save(update_fields=["payment_method"])
    return refusal


@transaction.atomic
def leave_out(order_id: UUID, attempt: int, sku: str) -> api.Refusal | None:
    """Go on without a product; return why not, or None when it was left out.

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
    refusal = _resubmit(order, STOCK, attempt, f"without {sku}", amendment)
    if refusal is None:
        OrderLine.objects.filter(order=order, sku=sku).delete()
        progress = api.progress(WORKFLOW, str(order.id))
        content = fingerprint(progress.data if progress else changed)
        order.total, order.fingerprint, order.waits_until = total, content, None
        order.save(update_fields=["total", "fingerprint", "waits_until"])
    return refusal


def may_wait(order_id: UUID) -> bool:
    """Return whether an order can wait for its goods: not one of which an application hears, not us."""
    return not Placement.objects.filter(order=order_id).exclude(application="").exists()


@transaction.atomic
def wait_for_stock(order_id: UUID, attempt: int) -> api.Refusal | None:
    """Keep the order until its goods are back, for two weeks at most; return why not, or None."""
    order = _lock(order_id)
    if not _offered(order, STOCK, attempt):
        return api.Refusal.CHANGED
    if not may_wait(order_id):
        return api.Refusal.INVALID
    later = api.Amendment(wait=EVERY, patience=PATIENCE.total_seconds())
    refusal = _resubmit(order, STOCK, attempt, "waits until it is back", later)
    if refusal is None:
        order.waits_until = Now() + PATIENCE
        order.save(update_fields=["waits_until"])
    return refusal


@transaction.atomic
def cancel(
    order_id: UUID, *, actor: str = ACTOR, reason: str = "the customer cancelled it"
) -> api.Refusal | None:
    """Have the order undone; return why not, or None when that has begun."""
    order = _lock(order_id)
    return api.undo(WORKFLOW, str(order.id), actor=actor, reason=reason)


def _lock(order_id: UUID) -> Order:
    return Order.objects.select_for_update(no_key=True).get(id=order_id)


def _offered(order: Order, step: str, attempt: int) -> bool:
    """Return whether it is for the customer to mend a step: all else that fails is for our staff."""
    offers = mends(api.progress(WORKFLOW, str(order.id)))
    return any((offer.step, offer.attempt) == (step, attempt) for offer in offers)


def _resubmit(
    order: Order, step: str, attempt: int, reason: str, amendment: api.Amendment
) -> api.Refusal | None:
    return api.resubmit(
        WORKFLOW,
        str(order.id),
        step,
        attempt=attempt,
        actor=ACTOR,
        reason=reason,
        amendment=amendment,
    )


def _wanted(lines: list[Line]) -> list[dict[str, str | int]]:
    return [line.as_json() for line in lines]
