"""Checks of gift cards: what is on each, and what orders paid with them and bought of them."""

from orchestration.api import Check, Scope
from orders.lifecycle.message import WORKFLOW

REMEDY = "Compare the card's entries with its orders, and have a developer set its balance."

CHECKS = (
    Check(
        scope=Scope.ALL,
        invariant=3,
        remedy=REMEDY,
        query="""
        SELECT coalesce(c.order::text, c.id::text), 'gift card …' || c.last4 || ' has ' || c.balance
            || ', but was issued with ' || c.amount || ', less ' || u.paid || ' paid and '
            || c.withdrawn || ' withdrawn (in minor units)'
        FROM orders_giftcard c
        -- by the index of the foreign key
        CROSS JOIN LATERAL (SELECT coalesce(sum(amount - returned), 0) AS paid
            FROM orders_giftuse WHERE card_id = c.id) u
        WHERE c.balance <> c.amount - c.withdrawn - u.paid OR c.balance < 0
            OR (c.void AND c.balance > 0)
        """,
    ),
    Check(
        invariant=3,
        remedy=REMEDY,
        query=f"""
        SELECT t.reference, 'is ' || o.status || ', and its gift card paid '
            || coalesce(u.amount - u.returned, 0) || ' of ' || g.paid || ' (in minor units), '
            || g.back || ' of it paid back'
        FROM audit_task t JOIN orders_order o ON o.id = t.order_id
        LEFT JOIN orders_giftuse u ON u.order = o.id
        CROSS JOIN LATERAL (SELECT coalesce((o.handling->>'gift_card')::bigint, 0) AS paid,
            (SELECT coalesce(sum(on_card), 0) FROM orders_refund
                WHERE order_id = o.id AND state = 'paid') AS back) g
        WHERE t.workflow = '{WORKFLOW}' AND (o.handling IS NOT NULL OR u.order IS NOT NULL)
          AND (g.paid <> coalesce(u.amount, 0) OR coalesce(u.returned, 0)
            <> CASE o.status WHEN 'undone' THEN g.paid ELSE g.back END)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=3,
        remedy="Issue what is missing by hand, or withdraw what is too much.",
        query=f"""
        SELECT t.reference, 'is ' || o.status || ' and bought ' || b.units || ' gift cards, but has '
            || c.cards || ', ' || c.open || ' of them not void'
        FROM audit_task t JOIN orders_order o ON o.id = t.order_id
        CROSS JOIN LATERAL (SELECT coalesce(sum(quantity), 0) AS units FROM orders_orderline
            WHERE order_id = o.id AND o.handling->'emailed' @> to_jsonb(sku)) b
        CROSS JOIN LATERAL (SELECT count(*) AS cards, count(*) FILTER (WHERE NOT void) AS open
            FROM orders_giftcard c WHERE c.order = o.id) c
        WHERE t.workflow = '{WORKFLOW}' AND o.handling->>'gifts' <> '0'
          AND CASE o.status WHEN 'confirmed' THEN c.open <> b.units WHEN 'undone' THEN c.open > 0
              ELSE c.cards > 0 AND c.open <> b.units END
        """,  # noqa: S608 - no input in it
    ),
)
