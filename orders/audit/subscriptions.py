"""Checks of subscriptions: each order placed once, in time, and at the price that was noted."""

from django.conf import settings

from orchestration.api import LATELY, Check, Scope

from .orders import MONEY, PLACEMENT

LATE = 1  # days

CHECKS = (
    Check(
        scope=Scope.ALL,
        invariant=1,
        remedy="Look at the task of today's run and the log of status.shop; then run the schedule now.",
        query=f"""
        SELECT s.id::text, 'is active, and its order of ' || s.next_on || ' is not placed'
        FROM orders_subscription s
        WHERE s.state = 'active' AND s.next_on < (
            SELECT (clock_timestamp() AT TIME ZONE '{settings.SHOP_TIME_ZONE}')::date - {LATE})
        """,  # noqa: S608 - no input in it
    ),
    Check(
        scope=Scope.ALL,
        invariant=1,
        remedy=PLACEMENT,
        query=f"""
        SELECT s.order::text, 'is noted for a subscription on ' || s.on || ', but was never placed'
        FROM orders_subscriptionorder s
        WHERE {LATELY.format("s.on")}
          AND NOT EXISTS (SELECT 1 FROM orders_placement p WHERE p.order = s.order)
        """,  # noqa: S608 - no input in it
    ),
    Check(
        scope=Scope.ALL,
        invariant=2,
        remedy="Look at both orders, and cancel one or pay it back.",
        query=f"""
        SELECT s.subscription_id::text, 'has ' || count(*) || ' orders for ' || s.on
        FROM orders_subscriptionorder s WHERE {LATELY.format("s.on")}
        GROUP BY s.subscription_id, s.on HAVING count(*) > 1
        """,  # noqa: S608 - no input in it
    ),
    Check(
        scope=Scope.ALL,
        invariant=3,
        remedy=MONEY,
        query=f"""
        SELECT s.order::text, 'was placed at ' || s.unit_price || ' for one, but its line says '
            || l.unit_price || ' (in minor units)'
        FROM orders_subscriptionorder s JOIN orders_orderline l ON l.order_id = s.order
        WHERE {LATELY.format("s.on")} AND l.unit_price <> s.unit_price
        """,  # noqa: S608 - no input in it
    ),
)
