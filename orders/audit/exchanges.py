"""Checks of exchanges: each return has its replacement once, which costs what was taken for it."""

from orchestration.api import Check
from orders.lifecycle.message import WORKFLOW
from orders.lifecycle.returns import RETURN_WORKFLOW

from .orders import MONEY

CHECKS = (
    Check(
        invariant=1,
        remedy="Look at the return and its order; place the replacement by hand, or pay it back.",
        query=f"""
        SELECT t.reference, 'is ' || r.state || CASE WHEN x.of_id IS NULL
            THEN ', but no replacement is noted for it'
            WHEN p.order IS NULL THEN ', but its replacement ' || x.order || ' was never placed'
            ELSE ', but has the replacement ' || x.order END
        FROM audit_task t JOIN orders_return r ON r.id = t.order_id
        LEFT JOIN orders_exchange x ON x.of_id = r.id
        LEFT JOIN orders_placement p ON p.order = x.order
        WHERE t.workflow = '{RETURN_WORKFLOW}'
          AND ((r.state = 'replaced') <> (x.of_id IS NOT NULL) OR (x.of_id IS NOT NULL AND p.order IS NULL))
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=3,
        remedy=MONEY,
        query=f"""
        SELECT t.reference, 'is ' || o.status || ' and costs ' || o.total || ', ' || e.part
            || ' of it paid by an exchange; noted are ' || coalesce(x.amount, 0) || ', and '
            || coalesce(x.returned, 0) || ' of that given back (in minor units)'
        FROM audit_task t JOIN orders_order o ON o.id = t.order_id
        LEFT JOIN orders_exchange x ON x.order = o.id
        CROSS JOIN LATERAL (SELECT coalesce((o.handling->>'exchange')::bigint, 0) AS part) e
        WHERE t.workflow = '{WORKFLOW}' AND (x.order IS NOT NULL OR e.part > 0)
          AND (x.order IS NULL OR e.part <> o.total OR CASE o.status
            WHEN 'confirmed' THEN x.amount <> o.total
            WHEN 'undone' THEN x.returned <> x.amount
            -- a line that is left out is paid back once the rest is sent
            ELSE x.amount < o.total OR x.returned > 0 END)
        """,  # noqa: S608 - no input in it
    ),
)
