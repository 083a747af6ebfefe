"""An order as JSON for its application, from the shop's own rows."""

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from orchestration import api
from orders import handling
from orders.charges import from_json
from orders.lifecycle import access as links
from orders.lifecycle import snapshots
from orders.lifecycle.numbers import order_number
from orders.lifecycle.order_offer import charged, handled
from orders.lifecycle.paying import payment_due
from orders.lifecycle.requests import Change, ChangeRequest
from orders.lifecycle.tracking import parcel
from orders.models import Order, Placement
from orders.models.parcel import Carrier, ParcelState

from .auth import caller
from .scopes import WRITE_ORDERS

STATUS = {  # by the task's state at the last status message
    None: "received",
    api.TaskState.PENDING: "received",
    api.TaskState.PROCESSING: "processing",
    api.TaskState.PROCESSED: "completed",
    api.TaskState.ERROR: "failed",
    api.TaskState.UNDOING: "undoing",
    api.TaskState.UNDONE: "undone",
}


def _known(request: HttpRequest, row: Placement) -> dict[str, Any]:
    return {
        "id": row.order,
        "number": order_number(row.order),
        "placed_at": row.created_at,
        **({"to_pay": row.offer["total"], **row.offer} if row.offer else {}),
        "url": request.build_absolute_uri(reverse("api:order", args=[row.order])),
    }


def placed(request: HttpRequest, row: Placement) -> dict[str, Any]:
    """Return an order as accepted.

    The link to the customer's page shows and changes more than the API: a token that may only read has none.
    """
    may_write = WRITE_ORDERS in caller(request).scopes
    page = request.build_absolute_uri(links.link(row.order)) if may_write else None
    return {**_known(request, row), "page": page}


def summary(request: HttpRequest, row: Placement, order: Order | None) -> dict[str, Any]:
    """Return an order for a list."""
    return {**_known(request, row), "status": _status(row, order)}


def full(request: HttpRequest, row: Placement) -> dict[str, Any]:
    """Return an order and its progress (at most five queries)."""
    order = (
        Order.objects.filter(id=row.order).prefetch_related("lines", "parcels", "removals").first()
    )
    progress = snapshots.of(order) if order else None
    asked = order.request if order else None
    steps = progress.steps if progress else ()
    pending = bool(asked and asked.pending)
    return {
        **placed(request, row),
        **(_as_it_is(order) if order else {}),
        "status": _status(row, order),
        "cancellable": progress is not None and progress.undoable and not pending,
        "cancellation": _asked(asked, Change.CANCEL),
        "address_change": _asked(asked, Change.ADDRESS),
        "removal": _asked(asked, Change.REMOVE),
        "payment_due": _payment_due(request, progress) if not pending else None,
        "tracking": parcel(progress),
        "parcels": _parcels(order, progress),
        "ended_at": progress.ended_at if progress else None,
        "steps": [
            {"name": step.name, "direction": step.direction, "state": step.state,
             "ended_at": step.ended_at}
            for step in steps
        ],
        "trouble": [
            {"step": step.name, "code": step.error_code, "resolve_by": step.resolve_by}
            for step in steps if step.state == api.StepState.ERROR
        ],
    }  # fmt: skip


def _parcels(order: Order | None, progress: api.Progress | None) -> list[dict[str, Any]]:
    """Return the parcels that an order is sent in, once they are known."""
    if order and (several := order.parcels.all()):
        names = ("state", "carrier", "tracking", "lines")
        return [{name: getattr(sent, name) for name in names} for sent in several]
    if order is None or not (tracking := parcel(progress)):
        return []
    lines = [{"sku": line.sku, "quantity": line.quantity} for line in order.lines.all()]
    return [
        {
            "state": ParcelState.SENT,
            "carrier": Carrier.SHIPPING,
            "tracking": tracking,
            "lines": lines,
        }
    ]


def _payment_due(request: HttpRequest, progress: api.Progress | None) -> dict[str, Any] | None:
    """Return what the customer has to do; the bank's page is for who may act for the customer."""
    due = payment_due(progress)
    return asdict(due) if due and WRITE_ORDERS in caller(request).scopes else None


def _status(row: Placement, order: Order | None) -> str:
    if order is None:
        return "failed" if row.aside else "received"
    progress = snapshots.of(order)
    return STATUS[progress.state if progress else None]


def _asked(asked: ChangeRequest | None, act: Change) -> str | None:
    """Return the state of the last request, if it was this one."""
    if asked is None or asked.act is not act:
        return None
    return "asked" if asked.pending else "refused"


def _as_it_is(order: Order) -> dict[str, Any]:
    """Return the order's current content: its customer may have removed lines."""
    lines = sorted(order.lines.all(), key=lambda line: line.id)
    return {
        "total": order.total,
        "refunded": order.refunded,
        **charged(from_json(order.charges)),
        **handled(handling.from_json(order.handling), order.total),
        "lines": [
            {"sku": line.sku, "name": line.name, "quantity": line.quantity,
             "unit_price": line.unit_price, "price": line.price}
            for line in lines
        ],
        "removed": [line for row in order.removals.all() for line in row.lines],
    }  # fmt: skip
