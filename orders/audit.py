"""The shop's own part of the audit: orders and their tasks, money, goods, parcels, mails."""

import json
from collections.abc import Iterable, Iterator

from django.db import connection

from orchestration.api import Check, Violation

from .ledger import LEVEL
from .message import APPLICATION, WORKFLOW, fingerprint
from .models import Order

GRACE = 60  # seconds in which a placed order becomes a task, or a posted one
PIECE = 2_000  # orders at once

LOOK = "Look at its placement and at the partners by its id; have it placed anew, or apologise."
MONEY = "Look at the payment by the order's id, and refund or charge what is wrong, by hand."
GOODS = "Look at the reservation by the order's id, and have the inventory mend it."
TOLD = "Have a developer set the order's status to the task's state, and tell the customer."

# Of each order of a read ledger: what was held, taken and given back; its task's own word on it.
# A step that may have been done, and one that was done by hand, allow both.
ACCOUNTS = f"""
SELECT t.reference, t.state, o.total, o.currency, m.*,
    coalesce(m.captured, 0) - coalesce(m.refunded, 0) AS net,
    coalesce(m.holds, 0) - coalesce(m.voids, 0) - coalesce(m.captures, 0) AS open_holds,
    c.state = 'processed' AND NOT coalesce(r.state IN ('processed', 'skipped') OR r.in_doubt, false)
        AS surely_taken,
    coalesce(r.state = 'processed', false)
        OR NOT (c.state IN ('processed', 'skipped') OR c.in_doubt) AS surely_not,
    EXISTS (SELECT 1 FROM audit_step s WHERE s.task = t.id AND s.agent = 'payment'
        AND s.state = 'skipped') AS by_hand
FROM audit_task t
JOIN orders_order o ON o.id::text = t.reference
JOIN audit_step c ON c.task = t.id AND c.name = 'capture_payment' AND c.direction = 'do'
LEFT JOIN audit_step r ON r.task = t.id AND r.name = 'capture_payment' AND r.direction = 'undo'
LEFT JOIN (
    SELECT reference AS paid, lower(min(currency)) AS in_currency, max(currency) <> min(currency)
            AS mixed,
        sum(amount) FILTER (WHERE kind = 'capture') AS captured,
        sum(amount) FILTER (WHERE kind = 'refund') AS refunded,
        count(*) FILTER (WHERE kind = 'authorize') AS holds,
        count(*) FILTER (WHERE kind = 'cancel') AS voids,
        count(*) FILTER (WHERE kind = 'capture') AS captures
    FROM audit_effect WHERE agent = 'payment' AND kind <> 'none' GROUP BY reference
) m ON m.paid = t.reference
WHERE t.workflow = '{WORKFLOW}' AND t.quiet
"""  # noqa: S608 - no input in it

RESERVED = f"""
SELECT t.id, t.reference, t.state, t.quiet, coalesce(g.count, 0) AS count, g.wrong,
    EXISTS (SELECT 1 FROM audit_step s WHERE s.task = t.id AND s.agent = 'inventory'
        AND (s.state = 'skipped' OR s.in_doubt)) AS unsure
FROM audit_task t
LEFT JOIN (
    SELECT e.reference,
        count(*) FILTER (WHERE e.kind = 'reserve') - count(*) FILTER (WHERE e.kind = 'release')
            AS count,
        bool_or(e.kind = 'reserve' AND e.detail <> w.goods) AS wrong
    FROM audit_effect e LEFT JOIN (
        SELECT order_id::text AS reference, jsonb_object_agg(sku, quantity) AS goods
        FROM orders_orderline GROUP BY order_id
    ) w ON w.reference = e.reference
    WHERE e.agent = 'inventory' AND e.kind IN ('reserve', 'release') GROUP BY e.reference
) g ON g.reference = t.reference
WHERE t.workflow = '{WORKFLOW}'
"""  # noqa: S608 - no input in it

OWN = (
    Check(
        invariant=1,
        mend=LOOK,
        query=f"""
        SELECT p.order::text, 'was placed at ' || to_char(p.created_at, 'YYYY-MM-DD HH24:MI:SS')
            || ', but there is neither an order nor a message for it'
        FROM orders_placement p
        WHERE p.created_at < (SELECT clock_timestamp()) - {GRACE} * interval '1 second'
          AND NOT EXISTS (SELECT 1 FROM orders_order o WHERE o.id = p.order)
          AND NOT EXISTS (SELECT 1 FROM orchestration_submission s
              WHERE s.workflow = '{WORKFLOW}' AND s.reference = p.order::text)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=1,
        mend=LOOK,
        query=f"""
        SELECT o.id::text, 'is ' || o.status || ', but has no task: nothing will happen to it'
        FROM orders_order o
        WHERE o.status NOT IN ('confirmed', 'undone') AND NOT EXISTS (
            SELECT 1 FROM orchestration_task t
            WHERE t.workflow = '{WORKFLOW}' AND t.reference = o.id::text)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=2,
        mend="Find out who submitted it; undo it, as nobody ordered it in the shop.",
        query=f"""
        SELECT t.reference, 'has a task, but no order'
        FROM audit_task t WHERE t.workflow = '{WORKFLOW}' AND NOT EXISTS (
            SELECT 1 FROM orders_order o WHERE o.id::text = t.reference)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=2,
        mend="Compare both with the customer's confirmation page, and undo it if the task's is wrong.",
        query=f"""
        SELECT t.reference, 'its order says ' || o.total || ', its lines ' || l.total
            || ' and its task ' || coalesce(k.data->>'total', 'nothing') || ' (in cents)'
        FROM audit_task t
        JOIN orchestration_task k ON k.id = t.id
        JOIN orders_order o ON o.id::text = t.reference
        CROSS JOIN LATERAL (SELECT coalesce(sum(unit_price * quantity), 0) AS total
            FROM orders_orderline WHERE order_id = o.id) l
        WHERE t.workflow = '{WORKFLOW}'
          AND (o.total <> l.total OR k.data->>'total' IS DISTINCT FROM o.total::text)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=3,
        mend=MONEY,
        query=f"""
        SELECT s.reference, 'step ' || s.name || ' asked for '
            || coalesce(s.request->>'amount', 'nothing') || ' of ' || o.total || ' cents'
        FROM audit_step s JOIN orders_order o ON o.id::text = s.reference
        WHERE s.workflow = '{WORKFLOW}' AND s.direction = 'do' AND s.state = 'processed'
          AND s.name IN ('authorize_payment', 'capture_payment')
          AND (s.request->>'amount' IS NULL OR (s.request->>'amount')::bigint < o.total
            -- more may be held than is taken, where the customer left something out since
            OR s.name = 'capture_payment' AND (s.request->>'amount')::bigint > o.total)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=11,
        mend=TOLD,
        query=f"""
        SELECT t.reference, CASE
            WHEN o.status_number > t.kept THEN 'the shop heard of status message '
                || o.status_number || ', but only ' || t.kept || ' were ever written'
            WHEN o.status_number < t.kept THEN 'the shop heard of status message '
                || o.status_number || ' only, and number ' || t.kept || ' is gone'
            ELSE 'is ' || t.state || ', but the shop shows it as ' || o.status END
        FROM audit_task t JOIN orders_order o ON o.id::text = t.reference
        WHERE t.workflow = '{WORKFLOW}' AND t.keeper <> '' AND (
            o.status_number > t.kept
            OR (o.status_number < t.kept AND t.unsent < t.kept)
            OR (o.status_number = t.kept AND o.status <> CASE t.state
                WHEN 'processed' THEN 'confirmed' WHEN 'error' THEN 'failed'
                WHEN 'undoing' THEN 'undoing' WHEN 'undone' THEN 'undone' ELSE 'received' END))
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=11,
        mend="Have a developer remove the order's note, so that its customer can ask again.",
        query=f"""
        SELECT o.id::text, 'waits for the answer to a request (' || (o.asked->>'act')
            || '), but neither that nor an answer is there'
        FROM orders_order o
        WHERE o.asked->>'refused' = ''
          AND NOT EXISTS (SELECT 1 FROM orchestration_taskrequest r
              WHERE r.request = (o.asked->>'id')::uuid AND r.done_at IS NULL)
          AND NOT EXISTS (SELECT 1 FROM orchestration_statusmessage m
              WHERE m.reply_to = '{APPLICATION}' AND m.detail->>'request' = o.asked->>'id')
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=11,
        mend="Have a developer set the placement's note, and tell the customer.",
        query=f"""
        SELECT p.order::text, 'was set aside, but the shop shows it as received'
        FROM orders_placement p JOIN orchestration_submission s
            ON s.workflow = '{WORKFLOW}' AND s.reference = p.order::text
        WHERE p.aside = '' AND s.refused_at IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM orders_order o WHERE o.id = p.order)
          AND NOT EXISTS (SELECT 1 FROM orchestration_statusmessage m
              WHERE m.reply_to = '{APPLICATION}' AND m.workflow = s.workflow
                AND m.reference = s.reference)
        """,  # noqa: S608 - no input in it
    ),
)

PHANTOMS = Check(
    invariant=2,
    mend="Find out who sent that call: the shop has no such order. Have the partner take it back.",
    query="""
    SELECT e.reference, min(e.agent) || ' did something for it (' || min(e.kind)
        || '), but there is no such order'
    FROM audit_effect e
    WHERE e.kind NOT IN ('none', 'level') AND e.reference IS NOT NULL
      AND e.agent IN ('inventory', 'payment', 'shipping', 'notification')
      AND NOT EXISTS (SELECT 1 FROM orders_order o WHERE o.id::text = e.reference)
    GROUP BY e.reference
    """,
)

PAYMENT = (
    Check(
        invariant=3,
        mend=MONEY,
        query=f"""
        SELECT a.reference, 'is ' || a.state || ', and ' || coalesce(a.captured, 0)
            || ' cents were taken, ' || coalesce(a.refunded, 0) || ' given back, of ' || a.total
        FROM ({ACCOUNTS}) a
        WHERE NOT ((a.net = a.total AND NOT a.surely_not) OR (a.net = 0 AND NOT a.surely_taken))
           OR a.captures > 1 OR a.mixed OR a.in_currency <> lower(a.currency)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=3,
        mend=MONEY,
        query=f"""
        SELECT a.reference, 'is ' || a.state || ', and its card is held '
            || coalesce(a.holds, 0) || ' times, let go ' || coalesce(a.voids, 0)
            || ' times, charged ' || coalesce(a.captures, 0) || ' times'
        FROM ({ACCOUNTS}) a
        WHERE NOT a.by_hand AND (a.open_holds < 0 OR coalesce(a.holds, 0) - coalesce(a.voids, 0) > 1
            OR (a.state IN ('processed', 'undone') AND a.open_holds <> 0))
        """,  # noqa: S608 - no input in it
    ),
)

INVENTORY = (
    Check(
        invariant=4,
        mend="Have the inventory count its stock; then look at its entries for that SKU.",
        query=f"""
        SELECT reference, 'of ' || (detail->>'start') || ' there are ' || (detail->>'on_hand')
            || ' on hand, ' || (detail->>'reserved') || ' reserved and ' || (detail->>'shipped')
            || ' shipped'
        FROM audit_effect WHERE agent = 'inventory' AND kind = '{LEVEL}' AND (
            (detail->>'start')::bigint <> (detail->>'on_hand')::bigint
                + (detail->>'reserved')::bigint + (detail->>'shipped')::bigint
            OR least((detail->>'on_hand')::bigint, (detail->>'reserved')::bigint,
                (detail->>'shipped')::bigint) < 0)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        invariant=4,
        mend=GOODS,
        query=f"""
        SELECT r.reference, CASE WHEN r.wrong THEN 'its goods are not those that are reserved'
            ELSE 'is ' || r.state || ', and its goods are reserved ' || r.count || ' times' END
        FROM ({RESERVED}) r
        WHERE r.wrong OR r.count NOT IN (0, 1) OR (r.quiet AND NOT r.unsure
            AND r.count <> CASE r.state WHEN 'processed' THEN 1 WHEN 'undone' THEN 0
                ELSE r.count END)
        """,  # noqa: S608 - no input in it
    ),
)

SHIPPING = Check(
    invariant=7,
    mend="Have the shipper cancel the parcel, or agree with the customer about it.",
    query=f"""
    SELECT t.reference, 'is undone, but its parcel is still booked'
    FROM audit_task t JOIN audit_step u ON u.task = t.id
    JOIN audit_effect e ON e.reference = t.reference AND e.agent = 'shipping'
    WHERE t.workflow = '{WORKFLOW}' AND t.quiet AND t.state = 'undone'
      AND u.name = 'create_shipment' AND u.direction = 'undo' AND u.state = 'processed'
    GROUP BY t.id, t.reference
    HAVING count(*) FILTER (WHERE e.kind = 'book') <> count(*) FILTER (WHERE e.kind = 'cancel')
    """,  # noqa: S608 - no input in it
)

UNHEARD = """
SELECT s.reference, 'step ' || s.name || ' is processed, but the partner knows nothing of it'
FROM audit_step s JOIN audit_task t ON t.id = s.task
WHERE t.quiet AND s.direction = 'do' AND s.state = 'processed' AND s.agent = '{agent}'
  AND t.workflow = '{workflow}' AND NOT EXISTS (SELECT 1 FROM audit_effect e
    WHERE e.task = s.task AND e.step = s.name AND e.direction = 'do' AND e.kind <> 'none')
"""


def audit(ledgers: frozenset[str]) -> Iterator[Violation]:
    """Check the orders; money, goods, parcels and mails where the partner's ledger was read."""
    for check in OWN:
        yield from check.violations({})
    yield from _altered()
    if ledgers:
        yield from PHANTOMS.violations({})
    for agent, checks in (
        ("payment", PAYMENT),
        ("inventory", INVENTORY),
        ("shipping", (SHIPPING,)),
    ):
        if agent in ledgers:
            yield from _all(checks)
    for agent in sorted(ledgers & {"shipping", "notification"}):
        query = UNHEARD.format(agent=agent, workflow=WORKFLOW)
        mend = "Ask the partner by the order's id, and have it done by hand if it was not."
        yield from Check(invariant=1, mend=mend, query=query).violations({})


def _all(checks: Iterable[Check]) -> Iterator[Violation]:
    for check in checks:
        yield from check.violations({})


def _altered() -> Iterator[Violation]:
    """Find tasks whose content is not what the order was made from."""
    ids = Order.objects.order_by("id").values_list("id", "fingerprint")
    last = None
    while piece := list((ids.filter(id__gt=last) if last else ids)[:PIECE]):
        last = piece[-1][0]
        known = {str(order): content for order, content in piece}
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT reference, data FROM orchestration_task WHERE workflow = %s"
                " AND reference = ANY(%s) AND id IN (SELECT id FROM audit_task)",
                [WORKFLOW, list(known)],
            )
            rows = cursor.fetchall()
        for reference, data in rows:
            content = data if not isinstance(data, str) else json.loads(data)
            if fingerprint(content) != known[reference]:
                yield Violation(
                    invariant=2,
                    reference=reference,
                    trouble="its task's content is not what the order was made from",
                    mend="Compare the task's input with the order, and undo it if that is wrong.",
                )
