"""Placing an order: once per checkout, in one transaction with the message that is posted."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from orchestration import api

from . import letters
from .message import WORKFLOW, Mail, Message
from .models import Placement
from .workflow import APPLICATION

CLAIM = """
INSERT INTO orders_placement ("order", fingerprint, customer_id, application, offer)
VALUES (%s, %s, %s, %s, %s::jsonb) ON CONFLICT DO NOTHING
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
) -> bool:
    """Post an order and its first letter, reporting whether it is new.

    `content` is the fingerprint of what was agreed.

    One that an application places is that application's: it is told what becomes of it, and `offer`
    keeps what it was promised.

    The same order again changes nothing; raises `OtherContent` if the id has other content. A
    second post waits for the first one's commit, so that of many parallel ones exactly one counts.
    """
    with transaction.atomic():
        agreed = json.dumps(offer) if offer else None
        row = (message.order, content, message.customer, application, agreed)
        if not _claim(row):
            if placed(message.order) != content:
                raise OtherContent(message.number)
            return False
        api.submit(
            WORKFLOW,
            reference=str(message.order),
            data=message.as_json(),
            reply_to=application or APPLICATION,
        )
        letters.received(message)
    return True


def _claim(row: tuple[UUID, str, int | None, str, str | None]) -> bool:
    """Take an order's id for what is in the row, reporting whether it was free."""
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, row)
        return bool(cursor.rowcount)


def confirmation(order: UUID, name: str, total: int, currency: str, language: str = "en") -> Mail:
    """Return the mail that says that the order is on its way; `total` in minor units."""
    to = letters.Recipient(order=order, name=name, language=language)
    return letters.confirmation(to, total, currency)
