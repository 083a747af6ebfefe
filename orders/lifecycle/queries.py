"""Queries of an order's page, which polls them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from orchestration.api import Progress
from orders import handling
from orders.cards import Card
from orders.charges import Charges, from_json
from orders.handling import Handling

from . import requests, snapshots
from .message import Address, Line
from .requests import ChangeRequest
from .sums import Sum, notes, sums

# rows, not models: most polls end here, and building a model takes longer than the statement
PLACED = """
SELECT o.id IS NOT NULL,
    CASE WHEN o.id IS NULL THEN p.customer_id ELSE o.customer_id END,
    coalesce(o.created_at, p.created_at),
    o.waits_until IS NOT NULL,
    coalesce(o.status_number, 0),
    o.asked,
    CASE WHEN o.id IS NULL THEN p.aside ELSE '' END,
    (SELECT coalesce(sum(number), 0) FROM orders_parcel WHERE order_id = o.id)
FROM (SELECT %s::uuid AS id) one
LEFT JOIN orders_order o ON o.id = one.id
LEFT JOIN orders_placement p ON p."order" = one.id
WHERE o.id IS NOT NULL OR p."order" IS NOT NULL
"""
PROGRESS = "SELECT snapshot, status, created_at FROM orders_order WHERE id = %s"
DETAILS = """
SELECT o.name, o.street, o.postcode, o.city, o.country, o.region,
    o.email, o.payment_method, o.total,
    -- and what a transfer was too much
    o.refunded + coalesce((SELECT sum(r.amount) FROM orders_refund r
        WHERE r.order_id = %s AND r.overpaid AND r.state = 'paid'), 0)::bigint,
    o.currency, o.charges,
    o.handling, s.subscription_id, b.order_id,
    (SELECT jsonb_agg(r.lines ORDER BY r.created_at) FROM orders_removal r WHERE r.order_id = %s),
    l.sku, l.name, l.unit_price, l.quantity
FROM orders_order o JOIN orders_orderline l ON l.order_id = o.id
LEFT JOIN orders_subscriptionorder s ON s."order" = o.id
LEFT JOIN orders_exchange x ON x."order" = o.id LEFT JOIN orders_return b ON b.id = x.of_id
WHERE o.id = %s
ORDER BY l.id
"""
CARDS = dict(Card.choices)


@dataclass(frozen=True, kw_only=True)
class PlacedOrder:
    """A placed order, with what its page's version depends on.

    `taken`: submitted, so it has a row; `waits`: for goods that are sold out; `number`: of the last
    status message; `asked`: the last request; `aside`: why it did not become an order; `parcels`: 0
    without a parcel of its own, and another number with each message about one.
    """

    id: UUID
    taken: bool
    customer: int | None
    placed_at: datetime
    waits: bool
    number: int
    asked: ChangeRequest | None
    aside: str
    parcels: int


def placed_order(order: UUID) -> PlacedOrder | None:
    """Return a placed order or None (one query by primary keys)."""
    with connection.cursor() as cursor:
        cursor.execute(PLACED, [order])
        row = cursor.fetchone()
    if row is None:
        return None
    taken, customer, placed_at, waits, number, asked, aside, parcels = row
    return PlacedOrder(
        id=order,
        taken=taken,
        customer=customer,
        placed_at=placed_at,
        waits=waits,
        number=number,
        asked=requests.read(json.loads(asked) if asked else None),
        aside=aside,
        parcels=parcels,
    )


def progress(order: UUID) -> Progress | None:
    """Return the progress of the last status message, or None (one query)."""
    with connection.cursor() as cursor:
        cursor.execute(PROGRESS, [order])
        row = cursor.fetchone()
    if row is None:
        return None
    snapshot, status, placed_at = row
    return snapshots.read(json.loads(snapshot) if snapshot else None, status, placed_at)


@dataclass(frozen=True, kw_only=True)
class OrderDetails:
    """The details that an order's page shows; amounts are in minor units.

    `replaces` is the order that something came back of, if this is what is sent for it.
    """

    address: Address
    email: str
    payment_method: str
    total: int
    refunded: int
    currency: str
    charges: Charges
    handling: Handling
    subscription: UUID | None
    replaces: UUID | None
    lines: tuple[Line, ...]
    removed: Sequence[Mapping[str, Any]]

    @property
    def card(self) -> str:
        """The card in words; "" if nothing was left to pay."""
        return str(CARDS.get(self.payment_method, self.payment_method)) if self.to_pay else ""

    @property
    def sums(self) -> list[Sum]:
        """How its price comes about, in the active language."""
        return sums(self.total, self.currency, self.charges, self.handling)

    @property
    def to_pay(self) -> int:
        """What is left to pay beside a gift card or an exchange."""
        return self.total - self.handling.paid

    @property
    def notes(self) -> list[str]:
        """What the customer is to know of it, in the active language."""
        return notes(self.handling, timezone.now())

    @property
    def ships(self) -> bool:
        """Whether there is a parcel."""
        return self.handling.ships


def details(order: UUID) -> OrderDetails | None:
    """Return an order's details, or None if it has no row yet (one query)."""
    with connection.cursor() as cursor:
        cursor.execute(DETAILS, [order] * 3)
        rows = cursor.fetchall()
    if not rows:
        return None
    name, street, postcode, city, country, region, *others = rows[0]
    (
        email,
        payment_method,
        total,
        refunded,
        currency,
        charges,
        special,
        subscription,
        replaces,
        removals,
        *_,
    ) = others
    return OrderDetails(
        address=Address(
            name=name, street=street, postcode=postcode, city=city, country=country, region=region
        ),
        email=email,
        payment_method=payment_method,
        total=total,
        refunded=refunded,
        currency=currency,
        charges=from_json(json.loads(charges) if charges else None),
        handling=handling.from_json(json.loads(special) if special else None),
        subscription=subscription,
        replaces=replaces,
        lines=tuple(
            Line(sku=sku, name=product, unit_price=price, quantity=quantity)
            for *_, sku, product, price, quantity in rows
        ),
        removed=[line for lines in json.loads(removals or "[]") for line in lines],
    )
