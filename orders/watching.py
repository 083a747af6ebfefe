"""What an order's page is built from, and what has to be known before: asked for with every look."""

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from orchestration.api import Progress

from . import asking, snapshots
from .asking import Asked
from .cards import Card
from .message import Address, Line

# rows, not models: most looks end here, and making an order of it takes longer than the statement
WATCHED = """
SELECT o.id IS NOT NULL,
    CASE WHEN o.id IS NULL THEN p.customer_id ELSE o.customer_id END,
    coalesce(o.created_at, p.created_at),
    o.waits_until IS NOT NULL,
    coalesce(o.status_number, 0),
    o.asked,
    CASE WHEN o.id IS NULL THEN p.aside ELSE '' END
FROM (SELECT %s::uuid AS id) one
LEFT JOIN orders_order o ON o.id = one.id
LEFT JOIN orders_placement p ON p."order" = one.id
WHERE o.id IS NOT NULL OR p."order" IS NOT NULL
"""
SNAPSHOT = "SELECT snapshot, status, created_at FROM orders_order WHERE id = %s"
TAKEN = """
SELECT o.name, o.street, o.postcode, o.city, o.country, o.email, o.payment_method, o.total, o.currency,
    l.sku, l.name, l.unit_price, l.quantity
FROM orders_order o JOIN orders_orderline l ON l.order_id = o.id
WHERE o.id = %s
ORDER BY l.id
"""
CARDS = dict(Card.choices)


@dataclass(frozen=True, kw_only=True)
class Watched:
    """An order that was placed, and what changes when its page does.

    `taken`: it is in our books; `waits`: for goods that are sold out; `number`: of the last status
    message; `asked`: the last request about it; `aside`: why it did not become an order.
    """

    id: UUID
    taken: bool
    customer: int | None
    placed_at: datetime
    waits: bool
    number: int
    asked: Asked | None
    aside: str


def watched(order: UUID) -> Watched | None:
    """Return an order, or None if it was not placed (one statement, by primary keys)."""
    with connection.cursor() as cursor:
        cursor.execute(WATCHED, [order])
        row = cursor.fetchone()
    if row is None:
        return None
    taken, customer, placed_at, waits, number, asked, aside = row
    return Watched(
        id=order,
        taken=taken,
        customer=customer,
        placed_at=placed_at,
        waits=waits,
        number=number,
        asked=asking.read(json.loads(asked) if asked else None),
        aside=aside,
    )


def progress(order: UUID) -> Progress | None:
    """Return where an order's task stood by the last status message (one statement)."""
    with connection.cursor() as cursor:
        cursor.execute(SNAPSHOT, [order])
        row = cursor.fetchone()
    if row is None:
        return None
    snapshot, status, placed_at = row
    return snapshots.read(json.loads(snapshot) if snapshot else None, status, placed_at)


@dataclass(frozen=True, kw_only=True)
class Taken:
    """An order in our books, as its page shows it; `total` in minor units."""

    address: Address
    email: str
    payment_method: str
    total: int
    currency: str
    lines: tuple[Line, ...]

    @property
    def card(self) -> str:
        """How it is paid, in words."""
        return str(CARDS.get(self.payment_method, self.payment_method))


def taken(order: UUID) -> Taken | None:
    """Return what the page of an order shows of our books (one statement), or None."""
    with connection.cursor() as cursor:
        cursor.execute(TAKEN, [order])
        rows = cursor.fetchall()
    if not rows:
        return None
    name, street, postcode, city, country, email, payment_method, total, currency, *_ = rows[0]
    return Taken(
        address=Address(name=name, street=street, postcode=postcode, city=city, country=country),
        email=email,
        payment_method=payment_method,
        total=total,
        currency=currency,
        lines=tuple(
            Line(sku=sku, name=product, unit_price=price, quantity=quantity)
            for *_, sku, product, price, quantity in rows
        ),
    )
