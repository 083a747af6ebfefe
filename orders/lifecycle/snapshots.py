"""Progress of an order by the last snapshot from the engine, in the shop's own rows (P22, P27)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from orchestration.api import Progress, TaskState
from orders.models import Order
from orders.models.order import OrderStatus

STATUS = {
    TaskState.PENDING: OrderStatus.RECEIVED,
    TaskState.PROCESSING: OrderStatus.RECEIVED,
    TaskState.PROCESSED: OrderStatus.CONFIRMED,
    TaskState.ERROR: OrderStatus.FAILED,
    TaskState.UNDOING: OrderStatus.UNDOING,
    TaskState.UNDONE: OrderStatus.UNDONE,
}
STATE: dict[str, TaskState] = {
    status: state for state, status in STATUS.items() if status != OrderStatus.RECEIVED
}


def read(snapshot: Mapping[str, Any] | None, status: str, placed_at: datetime) -> Progress | None:
    """Return the progress of an order's task by the last message; None before the first.

    A release without snapshots may have sent or stored the last message. Then only the status is
    known: there are no steps, and the customer can change nothing.
    """
    progress = Progress.from_json(snapshot) if snapshot else None
    if progress and STATUS[progress.state] == status:
        return progress
    if status == OrderStatus.RECEIVED:
        return None
    return Progress(
        state=STATE[status],
        created_at=placed_at,
        ended_at=None,
        overdue=False,
        undoable=False,
        steps=(),
    )


def of(order: Order) -> Progress | None:
    """Return the progress of an order by the last message; None before the first."""
    return read(order.snapshot, order.status, order.created_at)
