"""A day's figures: what was ordered, paid, taxed and paid back, by the day of the order."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from datetime import date, datetime, timedelta

from django.conf import settings
from django.db import connection

from orders.times import shop_zone

LONGEST = 366  # days at once
# By the index order_newest. Amounts are of orders that were charged, by the last message about their task;
# the tax of an order is a list in its row.
FIGURES = """
WITH placed AS (
    SELECT (o.created_at AT TIME ZONE %(zone)s)::date AS day, o.currency,
        -- what is sent for goods that came back is a sale of its own; by the index of the payer
        o.refunded + (SELECT coalesce(sum(x.amount), 0) FROM orders_exchange x
            JOIN orders_order r ON r.id = x.order AND r.status = 'confirmed'
            WHERE x.payer_id = o.id) AS parts,
        -- what is bought with a gift card is a sale, and the card is none
        o.total - coalesce((o.handling->>'gifts')::bigint, 0) AS total,
        coalesce((o.charges->>'shipping')::bigint, 0) AS shipping,
        coalesce((o.charges->>'discount')::bigint, 0) AS discount,
        (SELECT coalesce(sum((t.one->>'tax')::bigint), 0)
            FROM jsonb_array_elements(o.charges->'taxes') AS t (one)) AS tax,
        coalesce(jsonb_path_exists(o.snapshot, '$.steps[*] ? (@.name == $taker
            && @.direction == "do" && @.state == "processed")', p.taker), false)
            OR (o.status = 'confirmed' AND coalesce((o.handling->>'to_pay')::bigint, o.total) = 0) AS charged,
        coalesce(jsonb_path_exists(o.snapshot, '$.steps[*] ? (@.name == $taker
            && @.direction == "undo" && @.state == "processed")', p.taker), false) AS refunded
    FROM orders_order o CROSS JOIN LATERAL (SELECT jsonb_build_object('taker', CASE
            -- a transfer is taken as it arrives, and not captured
            WHEN jsonb_path_exists(o.snapshot, '$.steps[*] ? (@.result.taken == true)')
            THEN 'authorize_payment' ELSE 'capture_payment' END) AS taker) p
    WHERE o.created_at >= %(since)s AND o.created_at < %(until)s
)
SELECT day, currency, count(*), count(*) FILTER (WHERE charged),
    coalesce(sum(total) FILTER (WHERE charged), 0), coalesce(sum(total - tax) FILTER (WHERE charged), 0),
    coalesce(sum(tax) FILTER (WHERE charged), 0), coalesce(sum(shipping) FILTER (WHERE charged), 0),
    coalesce(sum(discount) FILTER (WHERE charged), 0),
    coalesce(sum(CASE WHEN refunded THEN total ELSE parts END), 0)
FROM placed GROUP BY day, currency ORDER BY day DESC, currency
"""


@dataclass(frozen=True)
class Figures:
    """The figures of a day, or of all days; amounts are in minor units and of charged orders."""

    day: date | None
    currency: str
    orders: int
    charged: int
    gross: int
    net: int
    tax: int
    shipping: int
    discount: int
    refunds: int


COUNTS, AMOUNTS = ("orders", "charged"), ("gross", "net", "tax", "shipping", "discount", "refunds")


def by_day(first: date, last: date) -> list[Figures]:
    """Return the figures of the days with orders, both ends included, the last day first (one query)."""
    parameters: dict[str, str | datetime] = {
        "zone": settings.SHOP_TIME_ZONE,
        "since": _midnight(first),
        "until": _midnight(last + timedelta(days=1)),
    }
    with connection.cursor() as cursor:
        cursor.execute(FIGURES, parameters)
        return [Figures(row[0], row[1], *map(int, row[2:])) for row in cursor.fetchall()]


def totals(days: Sequence[Figures]) -> list[Figures]:
    """Return the sums of all days, by currency."""
    sums = []
    for currency in sorted({day.currency for day in days}):
        columns = zip(*(astuple(day)[2:] for day in days if day.currency == currency), strict=True)
        sums.append(Figures(None, currency, *map(sum, columns)))
    return sums


def names() -> list[str]:
    """Return the names of the columns."""
    return [field.name for field in fields(Figures)]


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=shop_zone())
