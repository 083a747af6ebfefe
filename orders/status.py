"""The shop's private response queue: what the engine reports of orders (P27).

Each message has a snapshot of its task: with it, an order's rows are all that its page needs.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

from orchestration.api import Status

from . import letters
from .message import WORKFLOW
from .models import Aside, OrderStatus

MEANING = {  # of the engine's words; other ones leave an order's status as it is
    "received": OrderStatus.RECEIVED,
    "resumed": OrderStatus.RECEIVED,
    "completed": OrderStatus.CONFIRMED,
    "action_needed": OrderStatus.FAILED,
    "failed": OrderStatus.FAILED,
    "undoing": OrderStatus.UNDOING,
    "undone": OrderStatus.UNDONE,
}
ASIDE = {"set_aside": Aside.REFUSED, "closed": Aside.CLOSED}  # of what is no task
WRITTEN = {OrderStatus.FAILED, OrderStatus.UNDONE}  # of these a letter may have to tell
# Rows are locked in the order of their ids first, so that two receivers never wait for each other
# in a circle; a number that is not higher than the last one applied changes nothing.
APPLY = """
WITH told AS (
    SELECT * FROM unnest(
        %(orders)s::uuid[], %(numbers)s::int[], %(statuses)s::text[], %(snapshots)s::jsonb[]
    ) AS told (id, number, status, snapshot)
), locked AS MATERIALIZED (
    SELECT o.id FROM orders_order o JOIN told USING (id) ORDER BY o.id FOR NO KEY UPDATE OF o
)
UPDATE orders_order o
SET status = coalesce(told.status, o.status), status_number = told.number,
    snapshot = coalesce(told.snapshot, o.snapshot)
FROM told JOIN locked USING (id)
WHERE o.id = told.id AND o.status_number < told.number
RETURNING o.id, told.status, o.status_number
"""
# An answer counts whatever its number is: two receivers may take the messages of one order in turn.
ANSWER = """
UPDATE orders_order o
SET asked = CASE WHEN a.refusal <> '' THEN o.asked || jsonb_build_object('refused', a.refusal) END
FROM unnest(%(orders)s::uuid[], %(requests)s::text[], %(refusals)s::text[])
    AS a (id, request, refusal)
WHERE o.id = a.id AND o.asked->>'id' = a.request
"""
SET_ASIDE = """
UPDATE orders_placement p SET aside = told.aside
FROM unnest(%(orders)s::uuid[], %(asides)s::text[]) AS told (id, aside)
WHERE p."order" = told.id
"""


def receive(messages: Sequence[Status]) -> None:
    """Copy the latest news of each order to its row, and write to customers whom they concern.

    Older news change nothing.
    """
    ours = [message for message in messages if message.workflow == WORKFLOW]
    _set_aside(message for message in ours if message.kind.value in ASIDE)
    latest: dict[str, tuple[Status, str | None]] = {}
    for message in sorted(ours, key=lambda message: message.number):
        if message.kind.value in ASIDE:
            continue
        _, before = latest.get(message.reference, (None, None))
        latest[message.reference] = message, MEANING.get(message.kind.value, before)
    if not latest:
        return
    columns: dict[str, Any] = {
        "orders": list(latest),
        "numbers": [message.number for message, _ in latest.values()],
        "statuses": [status for _, status in latest.values()],
        "snapshots": [_snapshot(message) for message, _ in latest.values()],
    }
    with connection.cursor() as cursor:
        cursor.execute(APPLY, columns)
        news = cursor.fetchall()
    _answer([message for message in ours if "request" in message.detail])
    if told := {order: number for order, status, number in news if status in WRITTEN}:
        letters.tell(told)


def _snapshot(message: Status) -> str | None:
    return json.dumps(message.progress.as_json()) if message.progress else None


def _answer(answers: Sequence[Status]) -> None:
    """Take the notes of accepted requests away; write into those of the others why not."""
    if not answers:
        return
    columns = {
        "orders": [message.reference for message in answers],
        "requests": [message.detail["request"] for message in answers],
        "refusals": [message.detail.get("refusal", "") for message in answers],
    }
    with connection.cursor() as cursor:
        cursor.execute(ANSWER, columns)


def _set_aside(messages: Iterable[Status]) -> None:
    """Note of what was placed why it did not become an order: the last message about it counts."""
    asides = {
        message.reference: ASIDE[message.kind.value].value
        for message in sorted(messages, key=lambda message: message.at)
    }
    if not asides:
        return
    columns = {"orders": list(asides), "asides": list(asides.values())}
    with connection.cursor() as cursor:
        cursor.execute(SET_ASIDE, columns)
