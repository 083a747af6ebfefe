"""The shop's private response queue: what the engine tells about orders (P27)."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from orchestration.api import Status

from . import letters
from .message import WORKFLOW
from .models import OrderStatus

MEANING = {  # of the engine's words; other ones only count as heard
    "received": OrderStatus.RECEIVED,
    "resumed": OrderStatus.RECEIVED,
    "completed": OrderStatus.CONFIRMED,
    "action_needed": OrderStatus.FAILED,
    "failed": OrderStatus.FAILED,
    "undoing": OrderStatus.UNDOING,
    "undone": OrderStatus.UNDONE,
}
WRITTEN = {OrderStatus.FAILED, OrderStatus.UNDONE}  # of these a letter may have to tell
# Rows are locked in the order of their ids first, so that two receivers never wait for each other
# in a circle; a number that is not higher than the last one applied changes nothing.
APPLY = """
WITH told AS (
    SELECT * FROM unnest(%(orders)s::uuid[], %(numbers)s::int[], %(statuses)s::text[])
        AS told (id, number, status)
), locked AS MATERIALIZED (
    SELECT o.id FROM orders_order o JOIN told USING (id) ORDER BY o.id FOR NO KEY UPDATE OF o
)
UPDATE orders_order o
SET status = coalesce(told.status, o.status), status_number = told.number
FROM told JOIN locked USING (id)
WHERE o.id = told.id AND o.status_number < told.number
RETURNING o.id, o.status, o.status_number
"""


def receive(messages: Sequence[Status]) -> None:
    """Copy the latest news of each order to its row, and write to customers whom they concern.

    Older news change nothing.
    """
    latest: dict[str, tuple[int, str | None]] = {}
    ours = [message for message in messages if message.workflow == WORKFLOW]
    for message in sorted(ours, key=lambda message: message.number):
        _, before = latest.get(message.reference, (0, None))
        status = MEANING.get(message.kind.value, before)
        latest[message.reference] = (message.number, status)
    columns: dict[str, Any] = {
        "orders": list(latest),
        "numbers": [number for number, _ in latest.values()],
        "statuses": [status for _, status in latest.values()],
    }
    with connection.cursor() as cursor:
        cursor.execute(APPLY, columns)
        news = cursor.fetchall()
    if told := {order: number for order, status, number in news if status in WRITTEN}:
        letters.tell(told)
