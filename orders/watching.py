"""What has to be known of an order before its page is built: asked for with every look at it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

# rows, not models: most looks end here, and making an order of it takes longer than the statement
WATCHED = """
SELECT o.id IS NOT NULL,
    CASE WHEN o.id IS NULL THEN p.customer_id ELSE o.customer_id END,
    coalesce(o.created_at, p.created_at),
    o.waits_until IS NOT NULL
FROM (SELECT %s::uuid AS id) one
LEFT JOIN orders_order o ON o.id = one.id
LEFT JOIN orders_placement p ON p."order" = one.id
WHERE o.id IS NOT NULL OR p."order" IS NOT NULL
"""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """An order that was placed. `taken`: it is in our books; `waits`: for goods that are sold out."""

    id: UUID
    taken: bool
    customer: int | None
    placed_at: datetime
    waits: bool


def watched(order: UUID) -> Watched | None:
    """Return an order, or None if nobody placed it (one statement, by primary keys)."""
    with connection.cursor() as cursor:
        cursor.execute(WATCHED, [order])
        row = cursor.fetchone()
    if row is None:
        return None
    taken, customer, placed_at, waits = row
    return Watched(id=order, taken=taken, customer=customer, placed_at=placed_at, waits=waits)
