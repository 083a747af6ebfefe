"""Claims for lost parcels: staff decide whether the goods are sent again, paid back, or neither.

A parcel is claimed once. The claim is noted under the lock of its order's row, in the transaction that posts
its task. What is paid back is a refund as any other.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

from django.conf import settings
from django.db import transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from orchestration import api
from orders.handling import from_json
from orders.models import Claim, Order
from orders.models.claim import ClaimState
from orders.models.order import OrderStatus
from orders.models.returned import ReturnState

from . import claim_letters, exchanged, follow_up, loading, refunds, snapshots

CLAIM_WORKFLOW = "claim_parcel"
DECIDE, BOOK = "decide_claim", "book_again"
LONGEST_NOTE = 120  # characters
DECISION = {  # what the person enters who looks for the parcel
    "type": "object",
    "properties": {
        "send_again": {"type": "boolean", "description": "whether its goods are sent again"},
        "percent": {
            "type": "integer",
            "minimum": 0,
            "maximum": 100,
            "description": "of the order's total that is paid back",
        },
        "note": {
            "type": "string",
            "maxLength": LONGEST_NOTE,
            "description": "why; the customer reads it",
        },
    },
    "required": ["send_again", "percent", "note"],
    "additionalProperties": False,
}


class NotClaimable(Exception):
    """It cannot be claimed: no such parcel of the order, too early, claimed, or something came back."""


def claimable(order: Order, known: Sequence[Claim]) -> list[str]:
    """Return the parcels of an order that can be claimed now."""
    progress = snapshots.of(order)
    if order.status != OrderStatus.CONFIRMED or progress is None or progress.ended_at is None:
        return []
    if timezone.now() - progress.ended_at < timedelta(days=settings.CLAIM_AFTER_DAYS):
        return []
    several = order.parcels.values_list("tracking", flat=True) if not order.parcel else ()
    sent = [order.parcel, *several, *(claim.again for claim in known)]
    claimed = {claim.parcel for claim in known}
    return [parcel for parcel in sent if parcel and parcel not in claimed]


@transaction.atomic
def ask(order_id: UUID, parcel: str, *, id_: UUID) -> Claim:
    """Note that a parcel has not arrived, and post its task. Returns the claim.

    Raises `NotClaimable`; a parcel that is claimed already has its claim returned.
    """
    order = Order.objects.select_for_update(no_key=True).get(id=order_id)
    known = list(order.claims.all())
    for claim in known:
        if claim.parcel == parcel:
            return claim
    came_back = order.returns.exclude(state=ReturnState.LAPSED).exists()
    if parcel not in claimable(order, known) or came_back:
        raise NotClaimable
    new = Claim.objects.create(id=id_, order=order, parcel=parcel)
    data = {**_facts(new), "mail": claim_letters.again(new).as_json()}
    follow_up.post(order.id, CLAIM_WORKFLOW, id_, data)
    return new


def record(submitted: Sequence[api.Submitted]) -> None:
    """Refuse tasks that differ from the shop's rows; a process that serves the public posts them."""
    rows = _rows(submission.reference for submission in submitted)
    for submission in submitted:
        row = rows.get(submission.reference)
        facts = {name: value for name, value in submission.data.items() if name != "mail"}
        if row is None or facts != _facts(row):
            raise api.Refused("no such claim was made in the shop")


def load(references: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the present address of each claim's order (two queries)."""
    rows = _rows(references)
    orders = loading.load([str(row.order_id) for row in rows.values()])
    return {
        reference: {"address": orders[str(row.order_id)]["address"]}
        for reference, row in rows.items()
    }


def receive(messages: Sequence[api.Status]) -> None:
    """Apply messages about claims that have ended."""
    ends = {api.StatusKind.COMPLETED, api.StatusKind.UNDONE}
    ended = {
        message.reference: message
        for message in messages
        if message.workflow == CLAIM_WORKFLOW and message.kind in ends
    }
    if not ended:
        return
    # orders first, in the order of their ids, as `ask` and the refunds lock them
    locked = exchanged.locked(Claim.objects.filter(id__in=ended).values_list("order", flat=True))
    rows = Claim.objects.filter(id__in=ended, state=ClaimState.ASKED)
    for row in rows:
        row.order = locked[row.order_id]
        _settle(row, ended[str(row.id)])
    Claim.objects.bulk_update(rows, ["state", "again", "paid", "note"])


def _settle(row: Claim, message: api.Status) -> None:
    steps = message.progress.steps if message.progress else ()
    results = {step.name: step.result for step in steps if step.result}
    decision = results.get(DECIDE) if message.kind == api.StatusKind.COMPLETED else None
    if decision is None:  # staff undid it
        row.state = ClaimState.REFUSED
        claim_letters.send_refused(row)
        return
    row.note = decision["note"]
    if again := results.get(BOOK, {}).get("tracking"):
        row.again, row.state = str(again)[:60], ClaimState.SENT_AGAIN
    with translation.override(row.order.language):
        reason = " ".join(filter(None, [_("Your parcel was lost."), row.note]))
    amount = row.order.total * decision["percent"] // 100
    row.paid = refunds.refund_up_to(row.order, amount, reason, id_=uuid5(row.id, "refund"))
    if not row.again:
        row.state = ClaimState.REFUNDED if row.paid else ClaimState.REFUSED
    if row.state == ClaimState.REFUSED:
        claim_letters.send_refused(row)


def _rows(references: Any) -> dict[str, Claim]:
    ids = []
    for reference in references:
        with suppress(ValueError):
            ids.append(UUID(reference))
    known = Claim.objects.select_related("order").prefetch_related("order__lines").in_bulk(ids)
    return {str(id_): row for id_, row in known.items()}


def _facts(row: Claim) -> dict[str, Any]:
    """Return what the task knows of a claim, without its letter."""
    order = row.order
    names = {line.sku: line.name for line in order.lines.all()}
    lines = _lines(order, row.parcel)
    return {
        "order": str(order.id),
        "number": order.number,
        "email": order.email,
        "parcel": row.parcel,
        "lines": lines,
        "goods": ", ".join(f"{line['quantity']} x {names.get(line['sku'], '')}" for line in lines),
        "amount": order.total,
        "currency": order.currency,
    }


def _lines(order: Order, parcel: str) -> list[dict[str, Any]]:
    """Return what is in a parcel: of one that was sent again, what is in the first."""
    while before := order.claims.filter(again=parcel).first():
        parcel = before.parcel
    if one_of_several := order.parcels.filter(tracking=parcel).first():
        lines: list[dict[str, Any]] = one_of_several.lines
        return lines
    emailed = from_json(order.handling).emailed
    known = sorted(order.lines.all(), key=lambda line: line.id)
    return [
        {"sku": line.sku, "quantity": line.quantity} for line in known if line.sku not in emailed
    ]
