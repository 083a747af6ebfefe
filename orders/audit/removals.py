"""Checks of removals: their tasks, their units at the inventory, and transfers that were too much."""

from orchestration.api import LATELY, Check, Scope
from orders.lifecycle.message import WORKFLOW
from orders.lifecycle.removing import REMOVAL_WORKFLOW

from .orders import GRACE, MONEY, TO_PAY

CHECKS = (
    Check(
        scope=Scope.ALL,
        invariant=1,
        remedy="Have a developer post its task again: its units are reserved and not sold.",
        query=f"""
        SELECT r.id::text, 'was removed at ' || to_char(r.created_at, 'YYYY-MM-DD HH24:MI:SS')
            || ', but has neither a task nor a submission'
        FROM orders_removal r
        WHERE {LATELY.format("r.created_at")}
          AND r.created_at < (SELECT clock_timestamp()) - {GRACE} * interval '1 second'
          AND NOT EXISTS (SELECT 1 FROM audit_data d
            WHERE d.workflow = '{REMOVAL_WORKFLOW}' AND d.reference = r.id::text)
          AND NOT EXISTS (SELECT 1 FROM audit_submission s
            WHERE s.workflow = '{REMOVAL_WORKFLOW}' AND s.reference = r.id::text)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=3,
        remedy=MONEY,
        query=f"""
        SELECT t.reference, 'was paid by a transfer of ' || (s.request->>'amount') || ', costs ' || {TO_PAY}
            || ', and ' || f.amount || ' goes back (in minor units)'
        FROM audit_task t
        JOIN orders_order o ON o.id = t.order_id
        JOIN audit_step k ON k.task = t.id AND k.name = 'capture_payment' AND k.direction = 'do'
            AND k.state = 'skipped'
        JOIN audit_step s ON s.task = t.id AND s.name = 'authorize_payment' AND s.direction = 'do'
            AND s.state = 'processed' AND NOT s.by_hand
        CROSS JOIN LATERAL (SELECT coalesce(sum(amount), 0) AS amount FROM orders_refund
            WHERE order_id = o.id AND overpaid AND state <> 'undone') f
        WHERE t.workflow = '{WORKFLOW}' AND t.state = 'processed' AND o.status = 'confirmed'
          AND (s.request->>'amount')::bigint - f.amount <> {TO_PAY}
        """,  # noqa: S608 - no input in it
    ),
)

RELEASED = Check(
    invariant=4,
    remedy="Look at the reservation by the order's id, and have the inventory release what was removed.",
    query=f"""
    SELECT t.reference, 'is ' || t.state || ', and of ' || r.released::text || ' the inventory released '
        || coalesce(e.goods::text, 'nothing')
    FROM audit_task t JOIN orders_removal r ON r.id = t.order_id
    JOIN audit_step s ON s.task = t.id AND s.name = 'release_goods' AND s.direction = 'do'
    CROSS JOIN LATERAL (SELECT jsonb_object_agg(sku, quantity) AS goods FROM (
        SELECT part->>'sku' AS sku, sum((part->>'quantity')::int) AS quantity
        FROM jsonb_array_elements(r.released) part GROUP BY 1) units) w
    LEFT JOIN (SELECT task, count(*) AS count, jsonb_agg(detail)->0 AS goods
        FROM audit_effect WHERE agent = 'inventory' AND kind = 'release_part' GROUP BY task) e
        ON e.task = t.id
    WHERE t.workflow = '{REMOVAL_WORKFLOW}' AND t.quiet AND NOT s.by_hand AND NOT s.in_doubt
      AND (e.count > 1 OR e.goods <> w.goods
        -- once all of an order was released, nothing is left to do
        OR s.state = 'processed' AND e.goods IS NULL AND NOT EXISTS (
            SELECT 1 FROM audit_effect u WHERE u.agent = 'inventory' AND u.kind = 'release'
              AND u.reference = r.order_id::text))
    """,  # noqa: S608 - no input in it
)
