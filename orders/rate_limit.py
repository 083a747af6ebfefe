"""Rate limits, counted in the database so that all web processes share them.

django-ratelimit on Django's database cache would lose counts: that cache increments by a read and a
write, so of parallel tries only one counts. On Redis, limits would end while Redis is away.
"""

from dataclasses import dataclass
from math import ceil

from axes.helpers import get_client_ip_address
from django.db import connection
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

# Further tries count on but do not extend the time. A count that ends later than one started now is
# from before the clock was set back.
COUNT = """
INSERT INTO orders_throttle AS t (key, count, until)
VALUES (%(key)s, 1, clock_timestamp() + %(seconds)s * interval '1 second')
ON CONFLICT (key) DO UPDATE SET
    count = CASE WHEN t.until BETWEEN clock_timestamp() AND excluded.until THEN t.count + 1 ELSE 1 END,
    until = CASE WHEN t.until BETWEEN clock_timestamp() AND excluded.until THEN t.until
        ELSE excluded.until END
RETURNING count, extract(epoch FROM until - clock_timestamp())
"""
# Skipping locked rows keeps two processes that delete from deadlocking.
FORGET = """
DELETE FROM orders_throttle WHERE key IN (
    SELECT key FROM orders_throttle WHERE until < clock_timestamp() - interval '1 minute'
    LIMIT 100 FOR UPDATE SKIP LOCKED
)
"""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """How much of the `limit` is used, and the seconds `left` until the count is reset."""

    limit: int
    used: int
    left: int

    @property
    def within(self) -> bool:
        """Whether the limit is not exceeded."""
        return self.used <= self.limit


@dataclass(frozen=True)
class Limit:
    """At most `most` tries in `seconds`; `name` separates the kinds of tries.

    Those of staff begin with "staff-": the database role of the shop reaches no such count.
    """

    name: str
    most: int
    seconds: int

    def allows(self, who: str) -> bool:
        """Count a try; return whether it is within the limit."""
        return self.count(who).within

    def count(self, who: str) -> "Usage":
        """Count a try."""
        values: dict[str, str | int] = {"key": f"{self.name}:{_hash(who)}", "seconds": self.seconds}
        with connection.cursor() as cursor:
            cursor.execute(COUNT, values)
            count, left = cursor.fetchone() or (1, self.seconds)
            if count == 1:
                cursor.execute(FORGET)
        return Usage(limit=self.most, used=count, left=max(1, ceil(left)))

    def allows_address(self, request: HttpRequest) -> bool:
        """Count a try by a request's IP address, as axes determines it."""
        return self.allows(get_client_ip_address(request) or "unknown")

    @property
    def refusal_text(self) -> str:
        """The message for customers over the limit."""
        words = _("That was tried too often. Please wait %(minutes)d minutes, then try again.")
        return words % {"minutes": self.seconds // 60}


def _hash(who: str) -> str:
    """Return a keyed hash, so that the table holds no IP addresses."""
    return salted_hmac("orders.throttle", who, algorithm="sha256").hexdigest()[:32]
