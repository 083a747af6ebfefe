"""Levels that tasks have read from the inventory: the shop keeps the last ones.

No order depends on them: the inventory decides as it reserves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, transaction

from orchestration import api
from orders.lifecycle.message import APPLICATION

READING = "read_stock"
CORRECTING = "correct_stock"
READ = "read"  # the step that reads, of both
Reported = tuple[api.Status, api.Progress]

# Of one SKU, or of a page of SKUs in the order of code points: what is no longer there is removed. Who
# writes waits for who does: so the newest levels stay, however the messages about them come.
APPLY = """
WITH incoming AS (
    SELECT * FROM unnest(%(skus)s::text[], %(warehouses)s::text[], %(on_hand)s::bigint[],
        %(reserved)s::bigint[]) AS incoming (sku, warehouse, on_hand, reserved)
), gone AS (
    DELETE FROM orders_stocklevel s WHERE s.read_at < to_timestamp(%(at)s)
        AND CASE WHEN %(sku)s <> '' THEN s.product_id = %(sku)s
            ELSE s.product_id COLLATE "C" > %(after)s
                AND (%(next)s = '' OR s.product_id COLLATE "C" <= %(next)s) END
        AND NOT EXISTS (SELECT FROM incoming i
            WHERE i.sku = s.product_id AND i.warehouse = s.warehouse)
)
INSERT INTO orders_stocklevel AS s (product_id, warehouse, on_hand, reserved, read_at)
SELECT p.sku, i.warehouse, i.on_hand, i.reserved, to_timestamp(%(at)s)
FROM incoming i JOIN orders_product p ON p.sku = i.sku
WHERE NOT EXISTS (SELECT FROM orders_stocklevel k
    WHERE k.product_id = p.sku AND k.read_at >= to_timestamp(%(at)s))
ON CONFLICT (product_id, warehouse) DO UPDATE
SET on_hand = excluded.on_hand, reserved = excluded.reserved, read_at = excluded.read_at
"""


def receive(reported: Sequence[Reported]) -> None:
    """Keep the levels that tasks have read, and have the next page read."""
    for message, progress in reported:
        read = step_of(progress, READ).result
        if read and message.kind is api.StatusKind.COMPLETED:
            keep(read)
            if read["next"]:
                _read_on(message.reference, read["next"])


def step_of(progress: api.Progress, name: str) -> api.StepProgress:
    """Return how a step stands."""
    return next(step for step in progress.steps if step.name == name)


@transaction.atomic
def keep(read: Mapping[str, Any]) -> None:
    """Have the rows be what was read, but for what is newer (two statements)."""
    rows = [
        (sku, warehouse, *level)
        for sku, levels in read["levels"].items()
        for warehouse, level in levels.items()
    ]
    columns = zip(*rows, strict=True) if rows else ([], [], [], [])
    names = ("skus", "warehouses", "on_hand", "reserved")
    values = dict(zip(names, map(list, columns), strict=True))
    bounds = {name: read[name] for name in ("at", "sku", "after", "next")}
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE orders_stocklevel IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(APPLY, {**values, **bounds})


def _read_on(reference: str, after: str) -> None:
    first, _, number = reference.partition("#")
    begin_reading(f"{first}#{int(number or 1) + 1}", after)


def begin_reading(reference: str, after: str | None = None) -> None:
    """Submit a task that reads a page of levels: the first one, or that which comes after a SKU."""
    data = {"after": after} if after else {}
    api.submit(READING, reference=reference, data=data, reply_to=APPLICATION)
