"""Checks of orders against the partners' ledgers: money, goods, parcels and e-mails."""

from orchestration.api import Check, Scope
from orders.agents.partner_ledger import LEVEL
from orders.lifecycle.message import PARCEL_WORKFLOW, WORKFLOW

from . import stock
from .orders import MONEY, TO_PAY
from .removals import RELEASED
from .returns import LABELS

GOODS = "Look at the reservation by the order's id, and have the inventory correct it."

# Per order: what was authorized, captured and refunded by the ledger, and what its task claims. A
# step in doubt, and one that was done by hand, allow both.
ACCOUNTS = f"""
SELECT t.reference, t.state, o.currency,
    -- of a transfer all that was asked for is taken, and what is too much is paid back
    CASE WHEN k.state = 'skipped' AND c.state = 'processed' THEN (c.request->>'amount')::bigint
        ELSE {TO_PAY} END AS total, p.parts, p.asked, m.*,
    coalesce(m.captured, 0) - coalesce(m.refunded, 0) AS net,
    coalesce(m.holds, 0) - coalesce(m.voids, 0) - coalesce(m.captures, 0) AS open_holds,
    c.state = 'processed' AND NOT c.by_hand AND NOT coalesce(r.state = 'processed' OR r.in_doubt, false)
        AS surely_taken,
    coalesce(r.state = 'processed' AND NOT r.by_hand, false)
        OR NOT (c.state = 'processed' OR c.in_doubt) AS surely_not,
    EXISTS (SELECT 1 FROM audit_step s WHERE s.task = t.id AND s.agent = 'payment'
        AND s.by_hand) AS by_hand
FROM audit_task t
JOIN orders_order o ON o.id = t.order_id
-- what goes back to the payment: the rest goes to a gift card
CROSS JOIN LATERAL (SELECT coalesce(sum(amount - on_card) FILTER (WHERE state = 'paid'), 0) AS parts,
    coalesce(sum(amount - on_card) FILTER (WHERE state = 'asked'), 0) AS asked
    FROM orders_refund r WHERE r.order_id = o.id) p
JOIN audit_step k ON k.task = t.id AND k.name = 'capture_payment' AND k.direction = 'do'
-- the step that took the money: a transfer is not captured
JOIN audit_step c ON c.task = t.id AND c.direction = 'do'
    AND c.name = CASE k.state WHEN 'skipped' THEN 'authorize_payment' ELSE 'capture_payment' END
LEFT JOIN audit_step r ON r.task = t.id AND r.name = c.name AND r.direction = 'undo'
LEFT JOIN (
    SELECT reference AS paid, lower(min(currency)) AS in_currency, max(currency) <> min(currency)
            AS mixed,
        sum(amount) FILTER (WHERE kind IN ('capture', 'charge')) AS captured,
        sum(amount) FILTER (WHERE kind = 'refund') AS refunded,
        count(*) FILTER (WHERE kind = 'authorize') AS holds,
        count(*) FILTER (WHERE kind = 'cancel') AS voids,
        count(*) FILTER (WHERE kind = 'capture') AS captures,
        count(*) FILTER (WHERE kind = 'charge') AS charges
    FROM audit_effect WHERE agent = 'payment' AND kind <> 'none' GROUP BY reference
) m ON m.paid = t.reference
WHERE t.workflow = '{WORKFLOW}' AND t.quiet
"""  # noqa: S608 - no input in it

# the units of each order that were reserved: those that are left, and those that were removed since
STOCKED = """
SELECT order_id, sku, sum(quantity) AS quantity FROM (
    SELECT l.order_id, l.sku, l.quantity
    FROM orders_orderline l JOIN orders_order o ON o.id = l.order_id
    WHERE l.order_id IN (SELECT order_id FROM audit_task) AND (o.handling IS NULL
        OR o.handling->'reserve' @> jsonb_build_array(jsonb_build_object('sku', l.sku)))
    UNION ALL
    SELECT r.order_id, part->>'sku', (part->>'quantity')::int
    FROM orders_removal r, jsonb_array_elements(r.released) part
    WHERE r.order_id IN (SELECT order_id FROM audit_task)
) units GROUP BY order_id, sku
"""
RESERVED = f"""
SELECT t.id, t.reference, t.state, t.quiet, coalesce(g.count, 0) AS count, g.wrong,
    EXISTS (SELECT 1 FROM audit_step s WHERE s.task = t.id AND s.agent = 'inventory'
        AND (s.by_hand OR s.in_doubt)) AS unsure,
    -- nothing is, of gift cards and of what is made to order
    EXISTS (SELECT 1 FROM audit_step s WHERE s.task = t.id AND s.name = 'reserve_stock'
        AND s.state = 'skipped') AS not_stocked
FROM audit_task t
LEFT JOIN (
    SELECT e.task,
        count(*) FILTER (WHERE e.kind = 'reserve') - count(*) FILTER (WHERE e.kind = 'release')
            AS count,
        bool_or(e.kind = 'reserve' AND e.detail <> w.goods) AS wrong
    FROM audit_effect e LEFT JOIN (
        SELECT l.order_id::text AS reference, jsonb_object_agg(l.sku, l.quantity) AS goods
        FROM ({STOCKED}) l GROUP BY l.order_id
    ) w ON w.reference = e.reference
    WHERE e.agent = 'inventory' AND e.kind IN ('reserve', 'release') GROUP BY e.task
) g ON g.task = t.id  -- not by the order: a claim reserves for it again
WHERE t.workflow = '{WORKFLOW}'
"""  # noqa: S608 - no input in it

PHANTOMS = Check(
    scope=Scope.ALL,
    invariant=2,
    remedy="Find who sent the call: the order is unknown. Have the partner undo it.",
    query="""
    SELECT e.reference, min(e.agent) || ' has an effect for it (' || min(e.kind)
        || '), but the order is unknown'
    FROM audit_ledger e
    WHERE e.kind NOT IN ('none', 'level') AND e.reference IS NOT NULL
      AND e.agent IN ('inventory', 'payment', 'shipping', 'courier', 'notification')
      AND NOT EXISTS (SELECT 1 FROM orders_order o WHERE o.id::text = e.reference)
      AND e.reference NOT IN (SELECT reference FROM audit_lost WHERE reference IS NOT NULL)
    GROUP BY e.reference
    """,
)

PAYMENT = (
    Check(
        invariant=3,
        remedy=MONEY,
        query=f"""
        SELECT a.reference, 'is ' || a.state || ', and ' || coalesce(a.captured, 0)
            || ' minor units were captured, ' || coalesce(a.refunded, 0) || ' refunded, of ' || a.total
        FROM ({ACCOUNTS}) a
        WHERE NOT ((a.net BETWEEN a.total - a.parts - a.asked AND a.total - a.parts AND NOT a.surely_not)
                OR (a.net = 0 AND NOT a.surely_taken))
           OR a.captures + a.charges > 1 OR a.mixed OR a.in_currency <> lower(a.currency)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=3,
        remedy=MONEY,
        query=f"""
        SELECT a.reference, 'is ' || a.state || ', and its card has '
            || coalesce(a.holds, 0) || ' authorizations, ' || coalesce(a.voids, 0)
            || ' voids and ' || coalesce(a.captures, 0) || ' captures'
        FROM ({ACCOUNTS}) a
        WHERE NOT a.by_hand AND (a.open_holds < 0 OR coalesce(a.holds, 0) - coalesce(a.voids, 0) > 1
            OR (a.state IN ('processed', 'undone') AND a.open_holds <> 0))
        """,  # noqa: S608 - no input in it
    ),
)

INVENTORY = (
    Check(
        scope=Scope.ALL,
        invariant=4,
        remedy="Have the inventory count its stock, and compare its entries for that SKU.",
        query=f"""
        SELECT reference, 'of ' || (detail->>'start') || ' there are ' || (detail->>'on_hand')
            || ' on hand, ' || (detail->>'reserved') || ' reserved and ' || (detail->>'shipped')
            || ' shipped'
        FROM audit_ledger WHERE agent = 'inventory' AND kind = '{LEVEL}' AND (
            (detail->>'start')::bigint <> (detail->>'on_hand')::bigint
                + (detail->>'reserved')::bigint + (detail->>'shipped')::bigint
            OR least((detail->>'on_hand')::bigint, (detail->>'reserved')::bigint,
                (detail->>'shipped')::bigint) < 0
            OR (detail->>'on_hand')::bigint <> (SELECT sum(value::bigint)
                FROM jsonb_each_text(detail->'warehouses'))
            OR EXISTS (SELECT FROM jsonb_each_text(detail->'warehouses') WHERE value::bigint < 0))
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=4,
        remedy=GOODS,
        query=f"""
        SELECT r.reference, CASE WHEN r.wrong THEN 'other goods are reserved than ordered'
            ELSE 'is ' || r.state || ', and its goods are reserved ' || r.count || ' times' END
        FROM ({RESERVED}) r
        WHERE r.wrong OR r.count NOT IN (0, 1) OR (r.quiet AND NOT r.unsure
            AND r.count <> CASE r.state WHEN 'processed' THEN (NOT r.not_stocked)::int WHEN 'undone' THEN 0
                ELSE r.count END)
        """,  # noqa: S608 - no input in it
    ),
)

CARRIERS = (
    Check(
        invariant=7,
        remedy="Have the carrier cancel the parcel, or settle it with the customer.",
        query=f"""
        SELECT t.reference, 'is undone, but a parcel of it is still booked'
        FROM audit_task t JOIN audit_step u ON u.task = t.id
        JOIN audit_effect e ON e.reference = t.reference AND e.agent IN ('shipping', 'courier')
        WHERE t.workflow = '{WORKFLOW}' AND t.quiet AND t.state = 'undone'
          AND u.name IN ('create_shipment', 'send_parcels') AND u.direction = 'undo'
          AND u.state = 'processed' AND NOT u.by_hand
        GROUP BY t.id, t.reference
        HAVING count(*) FILTER (WHERE e.kind = 'book') <> count(*) FILTER (WHERE e.kind = 'cancel')
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=4,
        remedy="Have the carriers cancel the parcel that is too many, or settle it with the customer.",
        query=f"""
        SELECT t.reference, 'has ' || e.booked || ' booked parcels, and should have ' || p.count
        FROM audit_task t
        JOIN (SELECT reference, count(*) FILTER (WHERE kind = 'book')
                - count(*) FILTER (WHERE kind = 'cancel') AS booked
            FROM audit_effect WHERE agent IN ('shipping', 'courier') GROUP BY reference
        ) e ON e.reference = t.reference
        CROSS JOIN LATERAL (
            SELECT (SELECT count(*) FROM orders_parcel WHERE order_id = t.order_id AND state = 'sent')
                + (SELECT count(*) FROM audit_step s WHERE s.task = t.id AND s.name = 'create_shipment'
                    AND s.direction = 'do' AND s.state = 'processed')
                -- lost ones are sent again
                + (SELECT count(*) FROM orders_claim WHERE order_id = t.order_id
                    AND state IN ('asked', 'again')) AS count) p
        WHERE t.workflow = '{WORKFLOW}' AND t.quiet AND t.state = 'processed' AND e.booked > p.count
        """,  # noqa: S608 - no input in it
    ),
)


def _recorded(agent: str) -> Check:
    """Return the check that a partner has a record of each processed step."""
    return Check(
        invariant=1,
        remedy="Ask the partner by the order's id, and have it done by hand if it was not.",
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' is processed, but the partner has no record of it'
        FROM audit_step s JOIN audit_task t ON t.id = s.task
        WHERE t.quiet AND s.direction = 'do' AND s.state = 'processed' AND s.agent = '{agent}'
          AND NOT s.by_hand AND t.workflow IN ('{WORKFLOW}', '{PARCEL_WORKFLOW}')
          AND NOT EXISTS (SELECT 1 FROM audit_effect e
            WHERE e.task = s.task AND e.step = s.name AND e.direction = 'do' AND e.kind <> 'none')
        """,  # noqa: S608 - no input in it
    )


CHECKS = {  # by agent
    "payment": PAYMENT,
    "inventory": (*INVENTORY, RELEASED, *stock.LEDGER),
    "shipping": (*CARRIERS, LABELS, _recorded("shipping")),
    "courier": (_recorded("courier"),),
    "notification": (_recorded("notification"),),
}
