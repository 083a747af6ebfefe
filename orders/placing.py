"""Placing an order: once per checkout, in one transaction with the message that is posted."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from orchestration import api

from . import letters
from .message import APPLICATION, WORKFLOW, Mail, Message
from .models import Placement

CLAIM = """
INSERT INTO orders_placement ("order", fingerprint, customer_id, application, offer)
VALUES (%s, %s, %s, %s, %s::jsonb) ON CONFLICT DO NOTHING
RETURNING created_at
"""


class OtherContent(Exception):
    """The checkout was used before, for an order with other content; that one stands."""


def placed(order: UUID) -> str | None:
    """Return the fingerprint of what was placed under this id, or None if nothing was."""
    return Placement.objects.filter(order=order).values_list("fingerprint", flat=True).first()


def place(
    message: Message,
    content: str,
    *,
    application: str = "",
    offer: Mapping[str, Any] | None = None,
    fairness_key: str = "",
    priority: int = 0,
) -> Placement:
    """Post an order and its first letter, once; return what is kept of it.

    `content` is the fingerprint of what was agreed.

    One that an application places is that application's: it is told what becomes of it, and `offer`
    keeps what it was promised. A higher `priority` goes first. Within one, orders of different
    `fairness_key`s take turns; by default each application has one.

    The same order again changes nothing; raises `OtherContent` if the id has other content. A
    second post waits for the first one's commit, so that of many parallel ones exactly one counts.
    """
    new = Placement(
        order=message.order,
        fingerprint=content,
        customer_id=message.customer,
        application=application,
        offer=offer,
    )
    with transaction.atomic():
        if not _claim(new):
            before = Placement.objects.get(order=message.order)
            if before.fingerprint != content:
                raise OtherContent(message.number)
            return before
        task = api.Posting(
            workflow=WORKFLOW,
            reference=str(message.order),
            data=message.as_json(),
            reply_to=application or APPLICATION,
            fairness_key=fairness_key,
            priority=priority,
        )
        api.post([task, replace(letters.received(message), fairness_key=task.key)])
    return new


def _claim(new: Placement) -> bool:
    """Take an order's id, reporting whether it was free; the database says when that was."""
    offer = json.dumps(new.offer) if new.offer else None
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, [new.order, new.fingerprint, new.customer_id, new.application, offer])
        claimed = cursor.fetchone()
    if claimed is None:
        return False
    (new.created_at,) = claimed
    return True


def confirmation(order: UUID, name: str, total: int, currency: str, language: str = "en") -> Mail:
    """Return the mail that says that the order is on its way; `total` in minor units."""
    to = letters.Recipient(order=order, name=name, language=language)
    return letters.confirmation(to, total, currency)
