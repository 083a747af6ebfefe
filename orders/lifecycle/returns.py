"""Returns: units that a customer sends back, never more than were bought, over all returns.

A return is noted under the lock of its order's row, in the transaction that posts its task. One whose
parcel does not come lapses, and its units may be returned again. What is paid back is a refund as any other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

from django.conf import settings
from django.db import transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from orchestration import api
from orders.charges import from_json
from orders.models import Order, Return
from orders.models.claim import ClaimState
from orders.models.order import OrderStatus
from orders.models.returned import ReturnState

from . import exchange_offers, exchanged, exchanges, follow_up, refunds, return_letters, snapshots
from .exchange_offers import Bought, Coming, Wish, offer

RETURN_WORKFLOW = "return_order"
LABEL, BACK, INSPECT = "make_label", "goods_back", "inspect_goods"
ROLE = "returns"  # a Django group: its members inspect what comes back
SENT_WITHIN = 30 * 86_400  # seconds that a parcel may take, from when its label is sent
LABELLED = [1.0]  # seconds after which a message has the label, for the order's page
LONGEST_NOTE = 120  # characters
INSPECTION = {  # what the person enters who looks at the goods
    "type": "object",
    "properties": {
        "percent": {
            "type": "integer",
            "minimum": 0,
            "maximum": 100,
            "description": "of the amount that is paid back; 0 refuses the return, and an exchange "
            "needs 100",
        },
        "restock": {"type": "boolean", "description": "whether the goods can be sold again"},
        "note": {
            "type": "string",
            "maxLength": LONGEST_NOTE,
            "description": "why; the customer reads it",
        },
    },
    "required": ["percent", "restock", "note"],
    "additionalProperties": False,
}


class NotReturnable(Exception):
    """Nothing of the order can be sent back: it is not completed, or that is too long ago."""


class TooMany(Exception):
    """More units would be sent back than are left, or none; `left` is that, by SKU."""

    def __init__(self, left: Mapping[str, int]) -> None:
        super().__init__(left)
        self.left = left


class NotAwaited(Exception):
    """No parcel of this return is awaited: it has arrived already, or the return has ended."""


def within() -> timedelta:
    """Return for how long what was bought can be sent back."""
    return timedelta(days=settings.RETURN_WITHIN_DAYS)


def is_open(order: Order) -> bool:
    """Return whether something of an order can be sent back now."""
    progress = snapshots.of(order)
    if order.status != OrderStatus.CONFIRMED or progress is None or progress.ended_at is None:
        return False
    if timezone.now() - progress.ended_at > within():
        return False
    # what is lost, and paid back or looked for, does not come back
    lost = {ClaimState.ASKED, ClaimState.REFUNDED}
    return not any(claim.state in lost for claim in order.claims.all())


def left_of(bought: Iterable[Bought], known: Iterable[Return]) -> dict[str, int]:
    """Return the units that can still be sent back, by SKU."""
    gone = _units(known)
    return {line.sku: line.quantity - gone[line.sku] for line in bought}


def worth(
    order: Order, bought: Sequence[Bought], before: Sequence[Return], units: Mapping[str, int]
) -> int:
    """Return what units cost: their share of the goods after the discount.

    With the last units of an order it is all that is left of its total: shipping goes back, too.
    """
    until = _units(before) + Counter(units)
    return _price(order, bought, until) - sum(
        row.amount for row in before if row.state != ReturnState.LAPSED
    )


def coming(order: Order, units: Mapping[str, int]) -> Coming:
    """Return units of an order that may come back, and their worth; raise `TooMany` if they may not."""
    bought, before = list(order.lines.order_by("id")), list(order.returns.all())
    left = left_of(bought, before)
    if not units or any(not 1 <= count <= left.get(sku, 0) for sku, count in units.items()):
        raise TooMany(left)
    return Coming(
        order=order,
        bought=bought,
        units=units,
        amount=worth(order, bought, before, units),
        last=sum(left.values()) == sum(units.values()),
    )


@transaction.atomic
def ask(
    order_id: UUID, units: Mapping[str, int], reason: str, *, id_: UUID, wish: Wish | None = None
) -> Return:
    """Note a return of units by SKU, and post its task; `id_` once. Returns the return.

    The customer gets money for them, or what the `wish` says. Raises `NotReturnable`, `TooMany` for more
    units than are left, or none, and what `exchange_offers.offer` does.
    """
    order = Order.objects.select_for_update(no_key=True).get(id=order_id)
    if known := Return.objects.filter(id=id_, order=order).first():
        return known
    if not is_open(order):
        raise NotReturnable
    these = coming(order, units)
    new = Return.objects.create(
        id=id_,
        order=order,
        lines=[
            {"sku": line.sku, "name": line.name, "quantity": units[line.sku]}
            for line in these.bought
            if line.sku in units
        ],
        reason=reason,
        exchange_for=offer(wish, these).as_json() if wish else None,
        amount=these.amount,
    )
    data = {**_facts(new), "mail": return_letters.label(new).as_json()}
    follow_up.post(order.id, RETURN_WORKFLOW, id_, data)
    return new


@transaction.atomic
def arrived(return_id: UUID, *, by: str) -> None:
    """Report that the parcel of a return is at the warehouse; raise `NotAwaited` if none is awaited."""
    row = Return.objects.select_for_update(no_key=True).get(id=return_id)
    if not row.awaited:
        raise NotAwaited
    row.state = ReturnState.ARRIVED
    row.save(update_fields=["state"])
    report = uuid5(return_id, BACK)
    api.complete(RETURN_WORKFLOW, str(return_id), BACK, result={}, actor=by, id=report)


def record(submitted: Sequence[api.Submitted]) -> None:
    """Refuse tasks that differ from the shop's rows; a process that serves the public posts them."""
    ids = {submission.reference for submission in submitted}
    known = Return.objects.select_related("order").in_bulk(filter(None, map(_uuid, ids)))
    rows = {str(id_): row for id_, row in known.items()}
    for submission in submitted:
        row = rows.get(submission.reference)
        facts = {name: value for name, value in submission.data.items() if name != "mail"}
        if row is None or facts != _facts(row):
            raise api.Refused("no such return was asked for in the shop")


def receive(messages: Sequence[api.Status]) -> None:
    """Apply messages about returns: the label, the parcel that did not come, and the decision."""
    about = sorted(
        (message for message in messages if message.workflow == RETURN_WORKFLOW),
        key=lambda message: message.number,
    )
    if not about:
        return
    ids = {UUID(message.reference) for message in about}
    # orders first, in the order of their ids, as `ask` and the refunds lock them
    locked = exchanged.locked(Return.objects.filter(id__in=ids).values_list("order", flat=True))
    # and the returns, as `arrived` does: what the warehouse reports at this moment is not lost
    own = Return.objects.filter(id__in=ids).order_by("id").select_for_update(no_key=True)
    rows = {row.id: row for row in own}
    for message in about:
        if row := rows.get(UUID(message.reference)):
            row.order = locked[row.order_id]
            _apply(row, message)
    Return.objects.bulk_update(rows.values(), ["state", "label", "note", "paid"])


def _apply(row: Return, message: api.Status) -> None:
    steps = message.progress.steps if message.progress else ()
    results = {step.name: step.result for step in steps if step.result}
    if label := results.get(LABEL, {}).get("tracking"):
        row.label = str(label)[:60]
        if row.state == ReturnState.ASKED:
            row.state = ReturnState.AWAITED
    if row.ended:
        return
    if message.kind == api.StatusKind.UNDONE:
        _end(row)
    elif message.kind == api.StatusKind.COMPLETED:
        _settle(row, results[INSPECT])


def _end(row: Return) -> None:
    """Note that a return was undone: no parcel came, or staff ended it since."""
    if row.awaited:
        row.state = ReturnState.LAPSED
        return_letters.send_lapsed(row)
    else:
        row.state = ReturnState.REFUSED
        return_letters.send_refused(row)


def _settle(row: Return, seen: Mapping[str, Any]) -> None:
    """Send what is wished for goods that are sound; otherwise pay back what the inspection says.

    That much has to be left of the order. Writes if it is nothing.
    """
    row.note = seen["note"]
    wished = exchange_offers.read(row.exchange_for) if row.exchange_for else None
    sound = seen["percent"] == 100
    sent = bool(wished and sound and exchanges.place(row, wished, RETURN_WORKFLOW))
    amount = row.amount * seen["percent"] // 100 - (wished.total if wished and sent else 0)
    with translation.override(row.order.language):
        what = (
            _("The rest of what your return was worth.") if sent else _("Your return has arrived.")
        )
        not_sent = _("We could not exchange it.") if wished and not sent else ""
        reason = " ".join(filter(None, [what, not_sent, row.note]))
    row.paid = refunds.refund_up_to(row.order, amount, reason, id_=uuid5(row.id, "refund"))
    if sent:
        row.state = ReturnState.REPLACED
        return
    row.state = ReturnState.REFUNDED if row.paid else ReturnState.REFUSED
    if not row.paid:
        return_letters.send_refused(row)


def _facts(row: Return) -> dict[str, Any]:
    """Return what the task knows of a return, without its letter."""
    order = row.order
    return {
        "order": str(order.id),
        "number": order.number,
        "return": str(row.id),
        "email": order.email,
        "lines": row.lines,
        "goods": ", ".join(f"{line['quantity']} x {line['name']}" for line in row.lines),
        "reason": row.reason,
        "amount": row.amount,
        "currency": order.currency,
        **({"exchange": exchange_offers.read(row.exchange_for).words} if row.exchange_for else {}),
    }


def _uuid(reference: str) -> UUID | None:
    with suppress(ValueError):
        return UUID(reference)
    return None


def _units(known: Iterable[Return]) -> Counter[str]:
    """Return the units that come back, by SKU; not those of returns that lapsed."""
    units: Counter[str] = Counter()
    for row in known:
        if row.state != ReturnState.LAPSED:
            for line in row.lines:
                units[line["sku"]] += line["quantity"]
    return units


def _price(order: Order, bought: Sequence[Bought], units: Mapping[str, int]) -> int:
    """Return what was paid for this many units of each line."""
    if all(units.get(line.sku, 0) == line.quantity for line in bought):
        return order.total
    subtotal = sum(line.price for line in bought)
    gross = sum(line.unit_price * units.get(line.sku, 0) for line in bought)
    share: int = gross * (subtotal - from_json(order.charges).discount) // subtotal
    return share
