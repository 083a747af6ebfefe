"""Removing units from an order, until its parcel is booked.

The steps that send and charge the order take the field `left` of its task, so the engine refuses a removal
that comes after one of them was sent, whichever is first. As it is accepted, in the same transaction, the
order's rows change and a task about the order is posted, which has the inventory release these units.
"""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from orchestration import api
from orders import handling
from orders.models import Order, OrderLine, Removal

from . import fewer, follow_up, gift_cards, removal_letters, snapshots
from .emails import Recipient, confirmation
from .fewer import LEFT, NotRemovable, Places
from .message import APPLICATION, WORKFLOW, Line
from .paying import CAPTURE
from .readdressing import is_under_way
from .requests import Change, ChangeRequest
from .stages import do_steps

ACTOR = "customer"
STOCK = "reserve_stock"
REMOVAL_WORKFLOW = "remove_lines"
TO_COME = ("create_shipment", "plan_parcels", "send_parcels", CAPTURE)  # they take what is left
TOO_LATE = {api.TaskState.PROCESSED, api.TaskState.UNDOING, api.TaskState.UNDONE}
SET_ASIDE = {api.StepState.PROCESSED, api.StepState.SKIPPED}
UNSENT = {api.StepState.WAITING, api.StepState.SKIPPED}


class OtherRemoval(NotRemovable):
    """The id of a removal was used for another one of this order."""


@transaction.atomic
def remove(
    order_id: UUID, units: Mapping[str, int], *, id_: UUID, actor: str = ACTOR
) -> api.Refusal | None:
    """Request to remove units by SKU; `id_` once. Return the refusal, or None when requested.

    Raises `NotRemovable` and `NothingLeft`, and `OtherRemoval` if `id_` was used for other units.
    """
    order = Order.objects.select_for_update(no_key=True).get(id=order_id)
    if known := _known(order, id_):
        if known != units:
            raise OtherRemoval
        return None
    if not may_remove(order):
        return api.Refusal.CHANGED
    changed, charges, special = fewer.left(_before(order), units, _places(snapshots.of(order)))
    letter = confirmation(Recipient.of(order), changed["total"], order.currency, charges, special)
    asked = ChangeRequest(id=id_, act=Change.REMOVE)
    api.amend(
        WORKFLOW,
        str(order.id),
        data={LEFT: changed, "confirmation": letter.as_json()},
        actor=actor,
        reason="removed by the customer" if actor == ACTOR else "removed by its application",
        id=asked.id,
        note={"act": asked.act, "units": dict(units)},
    )
    # the letter, too: the process that carries the request out cannot sign its link
    mail = removal_letters.removed(order, units, changed["total"], charges, special)
    order.asked = {**asked.as_json(), "units": dict(units), "mail": mail.as_json()}
    order.save(update_fields=["asked"])
    return None


def may_remove(order: Order) -> bool:
    """Return whether something may still be removed, by the last message; the engine decides."""
    pending = order.request is not None and order.request.pending
    return is_open(snapshots.of(order)) and not pending


def is_open(progress: api.Progress | None) -> bool:
    """Return whether an order's goods are set aside, and neither sent nor charged."""
    if progress is None or not is_under_way(progress):
        return False
    steps = do_steps(progress)
    stock = steps.get(STOCK)
    set_aside = stock is not None and stock.state in SET_ASIDE
    return set_aside and all(steps[name].state in UNSENT for name in TO_COME if name in steps)


def _takes_left(progress: api.Progress) -> bool:
    """Return whether the steps to come take what is left: not those of a former release's tasks."""
    steps = do_steps(progress)
    to_come = [steps[name] for name in (TO_COME[0], CAPTURE) if name in steps]
    return all(
        f'["", "{LEFT}"' in json.dumps(step.request)
        for step in to_come
        if step.state is api.StepState.WAITING
    )


def removable(order: Any) -> dict[str, int]:
    """Return how many units of each line may be removed, of an order with `lines` and `handling`."""
    known: handling.Handling = order.handling
    counts = {}
    for line in order.lines:
        others = [other for other in order.lines if other.sku != line.sku]
        stays = [other for other in others if other.sku not in known.emailed or not known.ships]
        if line.sku not in known.made:
            # one stays where nothing else would be sent: all of it is the whole order
            counts[line.sku] = line.quantity if stays else line.quantity - 1
    return {sku: count for sku, count in counts.items() if count}


def is_offered(asked: api.AskedChange) -> bool:
    """Return whether a request leaves what the shop's page offers to leave, by the order's task."""
    units, progress = (asked.note or {}).get("units"), api.progress(WORKFLOW, asked.reference)
    if not isinstance(units, Mapping) or progress is None:
        return False
    if progress.state in TOO_LATE:
        return True  # the engine refuses it, and the customer sees that it came too late
    try:
        changed, *_ = fewer.left(fewer.present(asked.task_data), units, _places(progress))
    except (NotRemovable, fewer.NothingLeft, TypeError):
        return False
    set_aside = do_steps(progress)[STOCK].state in SET_ASIDE
    return (
        set_aside
        and _takes_left(progress)
        and asked.data.get(LEFT) == changed
        and asked.data.keys() <= {LEFT, "confirmation"}
    )


def apply(order: Order, content: Mapping[str, Any], request: UUID) -> None:
    """Change a locked order's rows to what its task says is left, and post the task of the removal."""
    asked, left = order.asked or {}, content[LEFT]
    if asked.get("id") != str(request):
        raise api.Refused("the order's row has no such request")
    counts = {line["sku"]: line["quantity"] for line in left["lines"]}
    rows = list(order.lines.order_by("id"))
    gone = [
        {"sku": line.sku, "name": line.name, "quantity": line.quantity - counts.get(line.sku, 0)}
        for line in rows
    ]
    row = Removal.objects.create(
        id=request,
        order=order,
        lines=[line for line in gone if line["quantity"]],
        released=left["parts"][-1],
        amount=order.total - left["total"],
    )
    OrderLine.objects.filter(order=order).exclude(sku__in=counts).delete()
    for line in rows:
        if line.quantity != (count := counts.get(line.sku, line.quantity)):
            OrderLine.objects.filter(pk=line.pk).update(quantity=count)
    order.total, order.charges = left["total"], left.get("charges") or None
    if order.handling:
        order.handling = left["handling"]
        gift_cards.take_less(order.id, order.handling["gift_card"])
    _post(row, asked["mail"])


def _post(row: Removal, mail: Mapping[str, Any]) -> None:
    order = row.order
    progress = api.progress(WORKFLOW, str(order.id))
    stock = do_steps(progress)[STOCK] if progress else None
    data: dict[str, Any] = {
        "order": str(order.id),
        "number": order.number,
        "reservation": (stock.result or {}).get("id") if stock else None,
        "lines": row.released,
        "amount": row.amount,
        "currency": order.currency,
        "email": order.email,
        "mail": mail,
    }
    follow_up.post(order.id, REMOVAL_WORKFLOW, row.id, data, reply_to=APPLICATION)


def _known(order: Order, id_: UUID) -> Mapping[str, int] | None:
    """Return what a removal takes away that was asked for under this id."""
    asked = order.asked or {}
    if asked.get("id") == str(id_):
        units: Mapping[str, int] | None = asked.get("units")
        return units
    row = order.removals.filter(id=id_).first()
    return {line["sku"]: line["quantity"] for line in row.lines} if row else None


def _before(order: Order) -> dict[str, Any]:
    lines = [
        Line(sku=line.sku, name=line.name, unit_price=line.unit_price, quantity=line.quantity)
        for line in order.lines.order_by("id")
    ]
    return {
        "total": order.total,
        "charges": order.charges,
        "handling": order.handling,
        "lines": [line.as_json() for line in lines],
        "parts": [row.released for row in order.removals.all()],
    }


def _places(progress: api.Progress | None) -> Places:
    """Return where reserved goods are, if that is in several warehouses."""
    stock = do_steps(progress).get(STOCK) if progress else None
    places: Places = (stock.result or {}).get("lines", []) if stock else []
    return places
