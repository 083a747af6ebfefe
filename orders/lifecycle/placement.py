"""Place an order once per checkout, and post its message in the same transaction."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from orchestration import api
from orders.charges import NONE, Charges
from orders.currency import LARGEST_TOTAL
from orders.handling import NONE as ORDINARY
from orders.handling import Handling
from orders.models import Placement

from . import discounts, emails, gift_cards
from .message import APPLICATION, WORKFLOW, Mail, Message, fingerprint

REPLACEMENTS = "replacements"  # they take turns with other orders, as one

CLAIM = """
INSERT INTO orders_placement ("order", fingerprint, customer_id, application, offer)
VALUES (%s, %s, %s, %s, %s::jsonb) ON CONFLICT DO NOTHING
RETURNING created_at
"""


class OtherContent(Exception):
    """The id was used for an order with other content, which is unchanged."""


class TooMuch(Exception):
    """The total is more than the payment provider takes at once; nothing was placed."""


def placed(order: UUID) -> str | None:
    """Return the fingerprint of the order placed under an id, or None."""
    return Placement.objects.filter(order=order).values_list("fingerprint", flat=True).first()


def place(
    message: Message,
    content: str,
    *,
    application: str = "",
    offer: Mapping[str, Any] | None = None,
    fairness_key: str = "",
    priority: int = 0,
    gift_card: str = "",
) -> Placement:
    """Post an order and its first e-mail, once; return its placement.

    `content` is the fingerprint of what the customer agreed to. `application` receives the status
    messages, and `offer` records the lines and total it was promised. A higher `priority` runs first;
    within one, orders of different `fairness_key`s take turns (default: one per application). `gift_card`
    is the code of the card that pays what the message says.

    Placing the same order again changes nothing; raises `OtherContent` if the content differs. A
    parallel call waits for the first one's commit, so exactly one of them posts. Raises `TooMuch` above
    the largest total, `discounts.NotValid` if its code has been used up meanwhile, and
    `gift_cards.NotValid` if its card has.
    """
    if message.total > LARGEST_TOTAL:
        raise TooMuch(message.number)
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
        task = _task(message, application, fairness_key=fairness_key, priority=priority)
        api.submit_many([task, replace(emails.received(message), fairness_key=task.key)])
        _use_codes(message, gift_card)  # last: others with these codes wait from here on
    return new


def place_replacement(
    message: Message,
    letter: api.Posting,
    about: api.TaskHandle,
    *,
    application: str,
    offer: Mapping[str, Any] | None,
) -> None:
    """Post an order for what came back, which is `about` its return, and its first e-mail.

    In the caller's transaction, which has the return's row locked: so once. No code is used, as the order
    has its part of the discount of the one that was paid.
    """
    new = Placement(
        order=message.order,
        fingerprint=fingerprint(message.as_json()),
        customer_id=message.customer,
        application=application,
        offer=offer,
    )
    _claim(new)
    task = _task(message, application, fairness_key=REPLACEMENTS, about=about)
    api.submit_many([task, replace(letter, fairness_key=task.key)])


def _task(message: Message, application: str, **more: Any) -> api.Posting:
    return api.Posting(
        workflow=WORKFLOW,
        reference=str(message.order),
        data=message.as_json(),
        reply_to=application or APPLICATION,
        **more,
    )


def _use_codes(message: Message, gift_card: str) -> None:
    """Count the use of a discount code, and take what a gift card pays."""
    if code := message.charges.code:
        subtotal = message.total - message.charges.extra
        discounts.use(message.order, code, subtotal, message.email)
    if message.handling.gift_card:
        gift_cards.use(message.order, gift_card, message.handling.gift_card)


def _claim(new: Placement) -> bool:
    """Insert the placement; return False if the id was taken. The database sets the time."""
    offer = json.dumps(new.offer) if new.offer else None
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, [new.order, new.fingerprint, new.customer_id, new.application, offer])
        claimed = cursor.fetchone()
    if claimed is None:
        return False
    (new.created_at,) = claimed
    return True


def confirmation(
    order: UUID,
    name: str,
    total: int,
    currency: str,
    language: str = "en",
    charges: Charges = NONE,
    handling: Handling = ORDINARY,
) -> Mail:
    """Return the confirmation; `total` is in minor units."""
    to = emails.Recipient(order=order, name=name, language=language)
    return emails.confirmation(to, total, currency, charges, handling)
