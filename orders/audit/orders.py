"""Checks of orders against their tasks, in the database only."""

from orchestration.api import LATELY, Check, Scope
from orders.lifecycle.fewer import LEFT
from orders.lifecycle.message import APPLICATION, WORKFLOW

GRACE = 60  # seconds in which a placed order becomes a task

PLACEMENT = "Look at its placement and at the partners by its id; place it again, or apologise."
# of an order `o`, beside a gift card
TO_PAY = "coalesce((o.handling->>'to_pay')::bigint, o.total)"
MONEY = "Look at the payment by the order's id, and refund or charge what is wrong."
STATUS = "Have a developer set the order's status to the task's state, and inform the customer."

CHECKS = (
    Check(
        scope=Scope.ALL,
        invariant=1,
        remedy=PLACEMENT,
        query=f"""
        SELECT p.order::text, 'was placed at ' || to_char(p.created_at, 'YYYY-MM-DD HH24:MI:SS')
            || ', but has neither an order nor a submission'
        FROM orders_placement p
        WHERE p.created_at < (SELECT clock_timestamp()) - {GRACE} * interval '1 second'
          AND {LATELY.format("p.created_at")}
          AND NOT EXISTS (SELECT 1 FROM orders_order o WHERE o.id = p.order)
          AND NOT EXISTS (SELECT 1 FROM audit_submission s
              WHERE s.workflow = '{WORKFLOW}' AND s.reference = p.order::text)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        scope=Scope.ALL,
        invariant=1,
        remedy=PLACEMENT,
        query=f"""
        SELECT o.id::text, 'is ' || o.status || ', but has no task, so nothing will happen to it'
        FROM orders_order o
        WHERE o.status NOT IN ('confirmed', 'undone') AND {LATELY.format("o.created_at")}
          AND NOT EXISTS (SELECT 1 FROM audit_data t
            WHERE t.workflow = '{WORKFLOW}' AND t.reference = o.id::text)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=2,
        remedy="Find who submitted it, and undo it: it was not ordered in the shop.",
        query=f"""
        SELECT t.reference, 'has a task but no order'
        FROM audit_task t WHERE t.workflow = '{WORKFLOW}' AND NOT EXISTS (
            SELECT 1 FROM orders_order o WHERE o.id = t.order_id)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=2,
        remedy="Compare both with the customer's confirmation page, and undo it if the task's is wrong.",
        query=f"""
        SELECT t.reference, 'its order says ' || o.total || ', its lines and charges ' || l.total
            || ' and its task ' || coalesce(k.total, 'nothing') || ' (in minor units)'
        FROM audit_task t
        JOIN (SELECT task, coalesce(data->'{LEFT}'->>'total', data->>'total') AS total FROM audit_data) k
            ON k.task = t.id
        JOIN orders_order o ON o.id = t.order_id
        CROSS JOIN LATERAL (SELECT coalesce((
                SELECT sum(unit_price * quantity) FROM orders_orderline WHERE order_id = o.id
            ), 0) + coalesce((o.charges->>'shipping')::bigint, 0)
            - coalesce((o.charges->>'discount')::bigint, 0) AS total) l
        WHERE t.workflow = '{WORKFLOW}'
          AND (o.total <> l.total OR k.total IS DISTINCT FROM o.total::text)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=3,
        remedy=MONEY,
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' requested '
            || coalesce(s.request->>'amount', 'nothing') || ' of ' || o.to_pay || ' minor units'
        FROM audit_task t JOIN audit_step s ON s.task = t.id
        JOIN (SELECT id, {TO_PAY} AS to_pay FROM orders_order o) o ON o.id = t.order_id
        WHERE s.workflow = '{WORKFLOW}' AND s.direction = 'do' AND s.state = 'processed'
          AND NOT s.by_hand
          AND s.name IN ('authorize_payment', 'capture_payment')
          AND (s.request->>'amount' IS NULL OR (s.request->>'amount')::bigint < o.to_pay
            -- more may be authorized than captured, if the customer removed a product since
            OR s.name = 'capture_payment' AND (s.request->>'amount')::bigint > o.to_pay)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=3,
        remedy=MONEY,
        query=f"""
        SELECT t.reference, 'says that ' || o.refunded || ' of ' || o.total || ' were paid back, its refunds '
            || f.paid || ' and ' || f.asked || ' under way, and replacements cost ' || x.cost
            || ' (in minor units)'
        FROM audit_task t JOIN orders_order o ON o.id = t.order_id
        CROSS JOIN LATERAL (SELECT coalesce(sum(amount) FILTER (WHERE state = 'paid'), 0) AS paid,
            coalesce(sum(amount) FILTER (WHERE state = 'asked'), 0) AS asked
            FROM orders_refund WHERE order_id = o.id AND NOT overpaid) f
        CROSS JOIN LATERAL (SELECT coalesce(sum(amount - returned), 0) AS cost
            FROM orders_exchange WHERE payer_id = o.id) x
        WHERE t.workflow = '{WORKFLOW}'
          AND (o.refunded <> f.paid OR f.paid + f.asked + x.cost > o.total)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=11,
        remedy=STATUS,
        query=f"""
        SELECT t.reference, CASE
            WHEN o.status_number > t.owner_statuses THEN 'the shop applied status message '
                || o.status_number || ', but the last one written is ' || t.owner_statuses
            WHEN o.status_number < t.owner_statuses THEN 'the shop applied status message '
                || o.status_number || ', but number ' || t.owner_statuses || ' is lost'
            ELSE 'is ' || t.state || ', but the shop shows it as ' || o.status END
        FROM audit_task t JOIN orders_order o ON o.id = t.order_id
        WHERE t.workflow = '{WORKFLOW}' AND t.owner_application <> '' AND (
            o.status_number > t.owner_statuses
            OR (o.status_number < t.owner_statuses AND t.unsent < t.owner_statuses)
            OR (o.status_number = t.owner_statuses AND o.status <> CASE t.state
                WHEN 'processed' THEN 'confirmed' WHEN 'error' THEN 'failed'
                WHEN 'undoing' THEN 'undoing' WHEN 'undone' THEN 'undone' ELSE 'received' END))
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=11,
        remedy="Have a developer clear the order's request, so that its customer can repeat it.",
        query=f"""
        SELECT o.id::text, 'waits for the answer to its request (' || (o.asked->>'act')
            || '), but there is no pending request and no answer'
        FROM audit_task t JOIN orders_order o ON o.id = t.order_id
        WHERE t.workflow = '{WORKFLOW}' AND o.asked->>'refused' = ''
          AND NOT EXISTS (SELECT 1 FROM audit_request r
              WHERE r.id = (o.asked->>'id')::uuid AND r.pending)
          AND NOT EXISTS (SELECT 1 FROM audit_message m
              WHERE m.reply_to = '{APPLICATION}' AND m.detail->>'request' = o.asked->>'id')
        """,  # noqa: S608 - no input in it
    ),
    Check(
        scope=Scope.ALL,
        invariant=11,
        remedy="Have a developer set the placement's note, and inform the customer.",
        query=f"""
        SELECT p.order::text, 'was set aside, but the shop shows it as received'
        FROM orders_placement p JOIN audit_submission s
            ON s.workflow = '{WORKFLOW}' AND p.order = CASE
                WHEN s.reference ~ '^[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$'
                THEN s.reference::uuid END
        WHERE p.aside = '' AND s.refused
          AND NOT EXISTS (SELECT 1 FROM orders_order o WHERE o.id = p.order)
          AND NOT EXISTS (SELECT 1 FROM audit_message m
              WHERE m.reply_to = '{APPLICATION}' AND m.workflow = s.workflow
                AND m.reference = s.reference)
        """,  # noqa: S608 - no input in it
    ),
)
