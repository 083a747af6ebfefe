"""Where an order stands by the shop's own rows: the last snapshot that the engine sent (P22, P27)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from orchestration.api import Progress, TaskState

from .models import Order, OrderStatus

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
    """Return where an order's task stood by the last message; None before the first.

    Where the snapshot is not of the last message (of a release that kept none, or sent none), the
    status is all that is known: its steps are not shown, and nothing can be done about the order.
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
    """Return where the task of an order stood by the last message; None before the first."""
    return read(order.snapshot, order.status, order.created_at)
