"""Checks of the stock: corrections and their tasks, and the shop's levels beside the inventory's."""

from orchestration.api import Check, Scope
from orders.agents.partner_ledger import LEVEL
from orders.stock.corrections import ADJUST
from orders.stock.levels import CORRECTING

from .returns import without_task

REMEDY = "Have the inventory count, and correct what is wrong in the admin."
CHANGE = "CASE c.kind WHEN 'counted' THEN c.units - c.expected WHEN 'removed' THEN -c.units ELSE c.units END"
APART = 1  # second by which the clocks of agent and inventory may differ

CHECKS = (
    without_task("orders_stockcorrection", CORRECTING),
    Check(
        scope=Scope.ALL,
        invariant=4,
        remedy=REMEDY,
        query="""
        SELECT product_id, 'has ' || on_hand || ' on hand in ' || warehouse || ', and ' || reserved
            || ' reserved'
        FROM orders_stocklevel WHERE on_hand < 0 OR reserved < 0
        """,
    ),
    Check(
        invariant=11,
        remedy="Have a developer set the correction's state to that of its task.",
        query=f"""
        SELECT t.reference, 'is ' || c.state || ', but its step ' || s.name || ' is ' || s.state
        FROM audit_task t JOIN audit_step s ON s.task = t.id AND s.name = '{ADJUST}' AND s.direction = 'do'
        JOIN orders_stockcorrection c ON c.id = t.order_id
        WHERE t.workflow = '{CORRECTING}' AND t.quiet AND t.state <> 'error'
          AND (c.state = 'made') <> (s.state = 'processed')
          AND NOT EXISTS (SELECT 1 FROM audit_message m
            WHERE m.workflow = t.workflow AND m.reference = t.reference)
        """,  # noqa: S608 - no input in it
    ),
)

LEDGER = (
    Check(
        invariant=4,
        remedy=REMEDY,
        query=f"""
        SELECT t.reference, 'its step {ADJUST} is ' || s.state || ', and the inventory has '
            || e.count || ' changes of it, by ' || e.change || ' instead of ' || {CHANGE}
        FROM audit_task t JOIN audit_step s ON s.task = t.id AND s.name = '{ADJUST}' AND s.direction = 'do'
        JOIN orders_stockcorrection c ON c.id = t.order_id
        CROSS JOIN LATERAL (
            SELECT count(*) AS count, coalesce(sum((detail->>'change')::bigint), 0) AS change,
                coalesce(bool_or(detail->>'sku' <> c.product_id OR detail->>'warehouse' <> c.warehouse),
                    false) AS elsewhere
            FROM audit_effect WHERE task = t.id AND agent = 'inventory' AND kind = 'adjust') e
        WHERE t.workflow = '{CORRECTING}' AND t.quiet AND NOT s.by_hand AND NOT s.in_doubt
          AND (e.count <> (s.state = 'processed')::int OR e.elsewhere
            OR e.count = 1 AND e.change <> {CHANGE})
        """,  # noqa: S608 - no input in it
    ),
    Check(
        # where nothing moved from before the shop's question until the audit's
        scope=Scope.ALL,
        invariant=4,
        remedy="Have a developer compare the last task of read_stock with the inventory's answer.",
        query=f"""
        SELECT l.product_id, 'has ' || l.on_hand || ' on hand and ' || l.reserved || ' reserved in '
            || l.warehouse || ' by the shop, and by the inventory ' || i.on_hand || ' and ' || i.reserved
        FROM orders_stocklevel l
        JOIN audit_ledger e ON e.reference = l.product_id AND e.agent = 'inventory' AND e.kind = '{LEVEL}'
        CROSS JOIN LATERAL (
            SELECT coalesce((e.detail->'warehouses'->>l.warehouse)::bigint, 0) AS on_hand,
                coalesce((e.detail->'held'->>l.warehouse)::bigint, 0) AS reserved) i
        WHERE l.read_at > to_timestamp((e.detail->>'moved_at')::float8 + {APART})
          AND l.read_at < to_timestamp((e.detail->>'seen_at')::float8 - {APART})
          AND (l.on_hand <> i.on_hand OR l.reserved <> i.reserved)
        """,  # noqa: S608 - no input in it
    ),
)
