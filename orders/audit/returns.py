"""Checks of returns and claims: their tasks and refunds, units that come back, labels at the shipper."""

from orchestration.api import LATELY, Check, Scope
from orders.lifecycle.claims import CLAIM_WORKFLOW
from orders.lifecycle.returns import LABEL, RETURN_WORKFLOW

from .orders import GRACE

REMEDY = "Compare the order's returns with its lines, and settle it with the customer."


def without_task(table: str, workflow: str) -> Check:
    """Return the check that what customers asked for has a task."""
    return Check(
        scope=Scope.ALL,
        invariant=1,
        remedy="Have a developer post its task again, or write to the customer.",
        query=f"""
        SELECT r.id::text, 'was asked for at ' || to_char(r.created_at, 'YYYY-MM-DD HH24:MI:SS')
            || ', but has neither a task nor a submission'
        FROM {table} r
        WHERE r.state = 'asked' AND {LATELY.format("r.created_at")}
          AND r.created_at < (SELECT clock_timestamp()) - {GRACE} * interval '1 second'
          AND NOT EXISTS (SELECT 1 FROM audit_data d
            WHERE d.workflow = '{workflow}' AND d.reference = r.id::text)
          AND NOT EXISTS (SELECT 1 FROM audit_submission s
            WHERE s.workflow = '{workflow}' AND s.reference = r.id::text)
        """,  # noqa: S608 - no input in it
    )


def _without_refund(table: str, workflow: str) -> Check:
    """Return the check that what is to be paid back is a refund."""
    return Check(
        invariant=3,
        remedy="Look at it and at the order's refunds, and pay back what is missing.",
        query=f"""
        SELECT t.reference, 'pays ' || r.paid || ' minor units back, but the order has no such refund'
        FROM audit_task t JOIN {table} r ON r.id = t.order_id
        WHERE t.workflow = '{workflow}' AND r.paid > 0 AND NOT EXISTS (
            -- of a replacement, at the order that paid it
            SELECT 1 FROM orders_refund f WHERE f.amount = r.paid AND f.order_id = coalesce((
                SELECT x.payer_id FROM orders_exchange x WHERE x.order = r.order_id), r.order_id))
        """,  # noqa: S608 - no input in it
    )


ASKED = {"orders_return": RETURN_WORKFLOW, "orders_claim": CLAIM_WORKFLOW}
CHECKS = (
    *(without_task(table, workflow) for table, workflow in ASKED.items()),
    *(_without_refund(table, workflow) for table, workflow in ASKED.items()),
    Check(
        invariant=2,
        remedy=REMEDY,
        query=f"""
        SELECT t.reference, b.units || ' of ' || b.sku || ' come back, but ' || coalesce(l.quantity, 0)
            || ' were bought'
        FROM audit_task t JOIN orders_return r ON r.id = t.order_id
        CROSS JOIN LATERAL (
            SELECT line->>'sku' AS sku, sum((line->>'quantity')::int) AS units
            FROM orders_return o, jsonb_array_elements(o.lines) line
            WHERE o.order_id = r.order_id AND o.state <> 'lapsed' GROUP BY line->>'sku') b
        LEFT JOIN orders_orderline l ON l.order_id = r.order_id AND l.sku = b.sku
        WHERE t.workflow = '{RETURN_WORKFLOW}' AND b.units > coalesce(l.quantity, 0)
        """,  # noqa: S608 - no input in it
    ),
)

LABELS = Check(
    invariant=7,
    remedy="Have the shipper cancel the label, or make it; the parcel may be on its way.",
    query=f"""
    SELECT t.reference, 'is ' || t.state || ', and the shipper has ' || count(e.kind)
        FILTER (WHERE e.kind = 'label') || ' labels of it and cancelled ' || count(e.kind)
        FILTER (WHERE e.kind = 'void')
    FROM audit_task t
    JOIN audit_step s ON s.task = t.id AND s.name = '{LABEL}' AND s.direction = 'do'
    LEFT JOIN audit_step u ON u.task = t.id AND u.name = '{LABEL}' AND u.direction = 'undo'
    LEFT JOIN audit_effect e ON e.task = t.id AND e.agent = 'shipping'
    WHERE t.workflow = '{RETURN_WORKFLOW}' AND t.quiet AND NOT s.by_hand AND NOT s.in_doubt
      AND NOT coalesce(u.by_hand OR u.in_doubt, false)
    GROUP BY t.id, t.reference, t.state, s.state, u.state
    HAVING count(e.kind) FILTER (WHERE e.kind = 'label') > 1
        OR count(e.kind) FILTER (WHERE e.kind = 'label') - count(e.kind) FILTER (WHERE e.kind = 'void')
            <> CASE WHEN s.state = 'processed' AND coalesce(u.state, '') <> 'processed' THEN 1 ELSE 0 END
    """,  # noqa: S608 - no input in it
)
