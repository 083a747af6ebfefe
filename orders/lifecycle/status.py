"""Receives status messages from the shop's private response queue (P27).

Each message has a snapshot of its task, so an order's page needs only the shop's own rows.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from orchestration.api import Status, StatusKind
from orders.models.order import Aside, OrderStatus

from . import (
    claims,
    discounts,
    emails,
    exchanges,
    gift_cards,
    gift_issue,
    overpaid,
    parcels,
    refunds,
    returns,
    snapshots,
    tracking,
)
from .message import WORKFLOW
from .paying import payment_due
from .reminders import Reminder

ASIDE = {
    "set_aside": Aside.REFUSED,
    "closed": Aside.CLOSED,
}  # for submissions that did not become a task
# what may need an e-mail: a status that is new, or a message that says it again
EMAILED = {OrderStatus.FAILED, OrderStatus.UNDONE}
REPORTED = {StatusKind.ACTION_NEEDED, StatusKind.FAILED, StatusKind.UNDONE}
# Rows are locked in the order of their ids, so that two receivers cannot deadlock. A number that is
# not higher than the last one applied changes nothing: of two messages of an order the later one may come
# first, so each says all.
APPLY = """
WITH incoming AS (
    SELECT * FROM unnest(
        %(orders)s::uuid[], %(numbers)s::int[], %(statuses)s::text[], %(snapshots)s::jsonb[],
        %(parcels)s::text[], %(reported)s::bool[]
    ) AS incoming (id, number, status, snapshot, parcel, reported)
), locked AS MATERIALIZED (
    SELECT o.id, o.status AS before FROM orders_order o JOIN incoming USING (id)
    ORDER BY o.id FOR NO KEY UPDATE OF o
)
UPDATE orders_order o
SET status = coalesce(incoming.status, o.status), status_number = incoming.number,
    snapshot = coalesce(incoming.snapshot, o.snapshot),
    parcel = coalesce(nullif(incoming.parcel, ''), o.parcel)
FROM incoming JOIN locked USING (id)
WHERE o.id = incoming.id AND o.status_number < incoming.number
RETURNING o.id, o.status, o.status_number, incoming.reported OR o.status <> locked.before,
    o.handling IS NOT NULL
"""
# An answer counts regardless of its number: two receivers may process one order's messages in turn.
ANSWER = """
UPDATE orders_order o
SET asked = CASE WHEN a.refusal <> '' THEN o.asked || jsonb_build_object('refused', a.refusal) END
FROM unnest(%(orders)s::uuid[], %(requests)s::text[], %(refusals)s::text[])
    AS a (id, request, refusal)
WHERE o.id = a.id AND o.asked->>'id' = a.request
"""
SET_ASIDE = """
UPDATE orders_placement p SET aside = incoming.aside
FROM unnest(%(orders)s::uuid[], %(asides)s::text[]) AS incoming (id, aside)
WHERE p."order" = incoming.id
"""


def receive(messages: Sequence[Status]) -> None:
    """Apply status messages to the orders, refunds and letters that they are about.

    Of an order the latest message counts; older ones change nothing.
    """
    ended = refunds.receive(messages)
    parcels.receive(messages)
    returns.receive(messages)
    claims.receive(messages)
    _apply(messages)
    overpaid.receive(messages)
    # cards last: who has their locks waits for no order
    gift_issue.receive(messages)
    refunds.match_cards(ended)


def _apply(messages: Sequence[Status]) -> None:
    relevant = [message for message in messages if message.workflow == WORKFLOW]
    _set_aside(message for message in relevant if message.kind.value in ASIDE)
    latest: dict[str, Status] = {}
    reported: set[str] = set()
    for message in sorted(relevant, key=lambda message: message.number):
        if message.kind.value not in ASIDE:
            latest[message.reference] = message
            if message.kind in REPORTED:
                reported.add(message.reference)
    if not latest:
        return
    columns: dict[str, Any] = {
        "orders": list(latest),
        "numbers": [message.number for message in latest.values()],
        "statuses": [_status(message) for message in latest.values()],
        "snapshots": [_snapshot(message) for message in latest.values()],
        "parcels": [tracking.parcel(message.progress)[:60] for message in latest.values()],
        "reported": [reference in reported for reference in latest],
    }
    with connection.cursor() as cursor:
        cursor.execute(APPLY, columns)
        applied = cursor.fetchall()
    _answer([message for message in relevant if "request" in message.detail])
    paying = {order for order, message in latest.items() if payment_due(message.progress)}
    due = {
        order: number
        for order, status, number, new, _special in applied
        if (new and status in EMAILED) or str(order) in paying
    }
    if due:
        discounts.give_back(order for order, status, *_ in applied if status == OrderStatus.UNDONE)
        emails.send_due(due, _reminders(relevant))
    settled = {
        order: status == OrderStatus.CONFIRMED
        for order, status, _, new, special in applied
        if special and new and status in {OrderStatus.CONFIRMED, OrderStatus.UNDONE}
    }
    if settled:
        exchanges.settle(settled)
        gift_issue.settle(settled)


def _reminders(messages: Iterable[Status]) -> dict[str, Reminder]:
    """Return the latest reminder of each order: when it was given, and until when it may pay."""
    return {
        message.reference: Reminder(
            at=message.at, until=datetime.fromisoformat(message.detail["until"])
        )
        for message in messages
        if message.kind is StatusKind.REMINDER
    }


def _status(message: Status) -> str | None:
    return snapshots.STATUS[message.progress.state] if message.progress else None


def _snapshot(message: Status) -> str | None:
    return json.dumps(message.progress.as_json()) if message.progress else None


def _answer(answers: Sequence[Status]) -> None:
    """Remove accepted requests from their orders; note the refusal of others."""
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
    """Note on placements why they did not become orders; the latest message counts."""
    asides = {
        message.reference: ASIDE[message.kind.value].value
        for message in sorted(messages, key=lambda message: message.at)
    }
    if not asides:
        return
    closed = [order for order, aside in asides.items() if aside == Aside.CLOSED]
    discounts.give_back(closed)
    exchanges.settle({UUID(order): False for order in closed})
    gift_cards.give_back(closed)
    columns = {"orders": list(asides), "asides": list(asides.values())}
    with connection.cursor() as cursor:
        cursor.execute(SET_ASIDE, columns)
