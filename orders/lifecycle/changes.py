"""Changes by the customer: another card, without a product, wait for goods, or cancel.

Each change is a request to the engine: checked against the shop's rows, noted on the order and
posted in one transaction. The engine carries it out later and calls `accepted` in its transaction,
so the order and its task change together. A request names the failed attempt that the customer saw,
and an order has one pending request at a time, so a second click changes nothing.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models.functions import Now

from orchestration import api
from orders import handling
from orders.models import Order, OrderLine, Placement

from . import fewer, gift_cards, readdressing, removing, snapshots
from .emails import Recipient, confirmation
from .fewer import NothingLeft
from .message import WORKFLOW, Line, fingerprint
from .paying import CAPTURE, CARD
from .requests import Change, ChangeRequest
from .tracking import STOCK, fixes

ACTOR = "customer"
WAIT_FOR_STOCK = timedelta(days=14)
RETRY_EVERY = 600.0  # seconds between attempts to reserve them


@transaction.atomic
def other_card(order_id: UUID, attempt: int, card: str) -> api.Refusal | None:
    """Request payment with another card; return the refusal, or None when requested."""
    order = _lock(order_id)
    step = next((name for name in (CARD, CAPTURE) if _offered(order, name, attempt)), None)
    if step is None:
        return api.Refusal.CHANGED
    amendment = api.Amendment(request={"payment_method": card, "amount": order.to_pay})
    asked = ChangeRequest(id=uuid4(), act=Change.CARD)
    _resubmit(order, asked, step, attempt, "another card", amendment, {"card": card})
    return None


@transaction.atomic
def leave_out(order_id: UUID, attempt: int, sku: str) -> api.Refusal | None:
    """Request to continue without a product; return the refusal, or None when requested.

    Raises `NothingLeft` if it is the only product in stock. More than the new total may be authorized on the
    card; only the new total is captured.
    """
    order = _lock(order_id)
    if not _offered(order, STOCK, attempt):
        return api.Refusal.CHANGED
    lines = [
        Line(sku=line.sku, name=line.name, unit_price=line.unit_price, quantity=line.quantity)
        for line in order.lines.exclude(sku=sku).order_by("id")
    ]
    if not handling.from_json(order.handling).reserved(lines):
        raise NothingLeft
    before = {"total": order.total, "charges": order.charges, "handling": order.handling}
    changed, charges, special = fewer.message_of(before, lines)
    total = changed["total"]
    changed["confirmation"] = confirmation(
        Recipient.of(order),
        total,
        order.currency,
        charges,
        special,
    ).as_json()
    amendment = api.Amendment(request={"lines": _reserved(changed)}, data=changed)
    asked = ChangeRequest(id=uuid4(), act=Change.LEAVE_OUT)
    note = {"sku": sku, "total": total}
    _resubmit(order, asked, STOCK, attempt, f"without {sku}", amendment, note)
    return None


def may_wait(order_id: UUID) -> bool:
    """Return whether an order can wait for its goods: not one placed by an application."""
    return not Placement.objects.filter(order=order_id).exclude(application="").exists()


@transaction.atomic
def wait_for_stock(order_id: UUID, attempt: int) -> api.Refusal | None:
    """Request to wait for goods, for two weeks at most; return the refusal, or None."""
    order = _lock(order_id)
    if not _offered(order, STOCK, attempt):
        return api.Refusal.CHANGED
    if not may_wait(order_id):
        return api.Refusal.INVALID
    later = api.Amendment(wait=RETRY_EVERY, patience=WAIT_FOR_STOCK.total_seconds())
    asked = ChangeRequest(id=uuid4(), act=Change.WAIT)
    _resubmit(order, asked, STOCK, attempt, "waits until it is back", later, {})
    return None


@transaction.atomic
def cancel(
    order_id: UUID, *, actor: str = ACTOR, reason: str = "the customer cancelled it"
) -> api.Refusal | None:
    """Request to undo the order; return the refusal, or None when requested."""
    order = _lock(order_id)
    if refusal := _undoable(order):
        return refusal
    asked = ChangeRequest(id=uuid4(), act=Change.CANCEL)
    api.request_undo(WORKFLOW, str(order.id), actor=actor, reason=reason, id=asked.id)
    _note(order, asked)
    return None


def permit(asked: api.AskedChange) -> None:
    """Refuse a change that the functions above do not make of an order, as its task has it.

    Runs in the submission process. What is asked for comes from a process that serves the public.
    """
    note = asked.note or {}
    match note.get("act"):
        case Change.CARD:
            amount = {
                "payment_method": note.get("card"),
                "amount": handling.to_pay(fewer.present(asked.task_data)),
            }
            as_offered = asked.step in {CARD, CAPTURE} and (asked.request, asked.data) == (
                amount,
                {},
            )
        case Change.LEAVE_OUT:
            lines = [line for line in asked.task_data["lines"] if line["sku"] != note.get("sku")]
            left = [Line(**line) for line in lines]
            changed, _charges, _special = fewer.message_of(asked.task_data, left)
            changed["confirmation"] = asked.data.get("confirmation")
            of_step = {"lines": _reserved(changed)}
            as_offered = (
                (asked.step, asked.request, asked.data) == (STOCK, of_step, changed)
                and bool(_reserved(changed))
                and note.get("total") == changed["total"]
            )
        case Change.REMOVE:
            as_offered = not asked.step and removing.is_offered(asked)
        case _:
            as_offered = False
    if not as_offered:
        raise api.Refused(f"no page of the shop asks to change {asked.step} like this")


def accepted(requests: Sequence[api.Accepted]) -> None:
    """Change the orders' rows for accepted requests, in the engine's transaction.

    Runs in the submission process, which may read the engine's tables.
    """
    for request in requests:
        if note := request.note:
            _apply(_lock(UUID(request.reference)), note, request.id)


def _apply(order: Order, note: Mapping[str, Any], request: UUID) -> None:
    changed = ["payment_method", "total", "charges", "handling", "fingerprint", "waits_until"]
    match note["act"]:
        case Change.ADDRESS:
            changed += readdressing.apply(order, request)
            order.fingerprint = fingerprint(_content(order))
        case Change.CARD:
            order.payment_method = note["card"]
        case Change.LEAVE_OUT:
            OrderLine.objects.filter(order=order, sku=note["sku"]).delete()
            order.total, order.waits_until = note["total"], None
            content = _content(order)
            order.fingerprint, order.charges = fingerprint(content), content.get("charges") or None
            if order.handling:
                order.handling = content["handling"]
                gift_cards.take_less(order.id, order.handling["gift_card"])
        case Change.REMOVE:
            removing.apply(order, _content(order), request)
            order.fingerprint = fingerprint(_content(order))
        case Change.WAIT:
            order.waits_until = Now() + WAIT_FOR_STOCK
    order.save(update_fields=changed)


def _content(order: Order) -> Mapping[str, Any]:
    task = api.progress(WORKFLOW, str(order.id))
    return task.data if task else {}


def _reserved(data: Mapping[str, Any]) -> Any:
    """Return the lines of a changed message that the inventory reserves."""
    return data["handling"]["reserve"] if "handling" in data else data["lines"]


def _lock(order_id: UUID) -> Order:
    return Order.objects.select_for_update(no_key=True).get(id=order_id)


def _offered(order: Order, step: str, attempt: int) -> bool:
    """Return whether the customer may fix a step; staff handle other failures."""
    if order.request and order.request.pending:
        return False
    offers = fixes(snapshots.of(order))
    return any((offer.step, offer.attempt) == (step, attempt) for offer in offers)


def _undoable(order: Order) -> api.Refusal | None:
    """Return why a request to undo would be refused, by the shop's own rows."""
    asked, progress = order.request, snapshots.of(order)
    if asked and asked.pending:
        return api.Refusal.NOT_UNDOABLE if asked.act is Change.CANCEL else api.Refusal.CHANGED
    if progress is None:
        return api.Refusal.CHANGED
    if progress.state in {api.TaskState.UNDOING, api.TaskState.UNDONE}:
        return api.Refusal.NOT_UNDOABLE
    return None if progress.undoable else api.Refusal.IRREVERSIBLE


def _resubmit(
    order: Order,
    asked: ChangeRequest,
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


def _note(order: Order, asked: ChangeRequest) -> None:
    order.asked = asked.as_json()
    order.save(update_fields=["asked"])
