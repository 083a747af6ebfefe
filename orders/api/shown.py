"""An order as its application reads it, from the shop's own rows."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from orchestration import api
from orders import access as links
from orders import snapshots
from orders.asking import Act, Asked
from orders.message import order_number
from orders.models import Order, Placement
from orders.tracking import parcel

STATUS = {  # of an order, by its task's state at the last status message
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
        **(row.offer or {}),
        "url": request.build_absolute_uri(reverse("api:order", args=[row.order])),
    }


def placed(request: HttpRequest, row: Placement) -> dict[str, Any]:
    """Return an order as it was accepted, with the customer's own page."""
    page = request.build_absolute_uri(links.link(row.order))
    return {**_known(request, row), "page": page}


def summary(request: HttpRequest, row: Placement, order: Order | None) -> dict[str, Any]:
    """Return an order as it is listed."""
    return {**_known(request, row), "status": _status(row, order)}


def full(request: HttpRequest, row: Placement) -> dict[str, Any]:
    """Return an order and how it goes (three statements at most)."""
    order = Order.objects.filter(id=row.order).prefetch_related("lines").first()
    progress = snapshots.of(order) if order else None
    asked = order.request if order else None
    steps = progress.steps if progress else ()
    pending = bool(asked and asked.pending)
    return {
        **placed(request, row),
        **(_as_it_is(order) if order else {}),
        "status": _status(row, order),
        "cancellable": progress is not None and progress.undoable and not pending,
        "cancellation": _cancellation(asked),
        "tracking": parcel(progress),
        "steps": [
            {"name": step.name, "direction": step.direction, "state": step.state,
             "ended_at": step.ended_at}
            for step in steps
        ],
        "trouble": [
            {"step": step.name, "code": step.error_code, "mend_by": step.mend_by}
            for step in steps if step.state == api.StepState.ERROR
        ],
    }  # fmt: skip


def _status(row: Placement, order: Order | None) -> str:
    if order is None:
        return "failed" if row.aside else "received"
    progress = snapshots.of(order)
    return STATUS[progress.state if progress else None]


def _cancellation(asked: Asked | None) -> str | None:
    """Return what became of the last request to cancel, if that was the last request."""
    if asked is None or asked.act is not Act.CANCEL:
        return None
    return "asked" if asked.pending else "refused"


def _as_it_is(order: Order) -> dict[str, Any]:
    """Return what the order holds by now: its customer may have left something out."""
    lines = sorted(order.lines.all(), key=lambda line: line.id)
    return {
        "total": order.total,
        "lines": [
            {"sku": line.sku, "name": line.name, "quantity": line.quantity,
             "unit_price": line.unit_price, "price": line.price}
            for line in lines
        ],
    }  # fmt: skip
