"""How often somebody may try something: counted in the database, so in all web processes together."""

from dataclasses import dataclass
from math import ceil

from axes.helpers import get_client_ip_address
from django.db import connection
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

# Who tries too often while the count runs is counted on, but the time does not start again. A count
# that ends later than one that begins now is of before the clock was set back.
COUNT = """
INSERT INTO orders_throttle AS t (key, count, until)
VALUES (%(key)s, 1, clock_timestamp() + %(seconds)s * interval '1 second')
ON CONFLICT (key) DO UPDATE SET
    count = CASE WHEN t.until BETWEEN clock_timestamp() AND excluded.until THEN t.count + 1 ELSE 1 END,
    until = CASE WHEN t.until BETWEEN clock_timestamp() AND excluded.until THEN t.until
        ELSE excluded.until END
RETURNING count, extract(epoch FROM until - clock_timestamp())
"""
# Skipping what is locked keeps two who forget at once from waiting for each other in a circle.
FORGET = """
DELETE FROM orders_throttle WHERE key IN (
    SELECT key FROM orders_throttle WHERE until < clock_timestamp() - interval '1 minute'
    LIMIT 100 FOR UPDATE SKIP LOCKED
)
"""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """How many of the `limit` were used, and the seconds `left` until the count starts anew."""

    limit: int
    used: int
    left: int

    @property
    def within(self) -> bool:
        """Whether this one is allowed."""
        return self.used <= self.limit


@dataclass(frozen=True)
class Limit:
    """So many tries (`most`) in so many `seconds`; `name` keeps one kind of try from another."""

    name: str
    most: int
    seconds: int

    def allows(self, who: str) -> bool:
        """Count one more try, reporting whether it is within the limit."""
        return self.count(who).within

    def count(self, who: str) -> "Counted":
        """Count one more try."""
        values: dict[str, str | int] = {"key": f"{self.name}:{_hash(who)}", "seconds": self.seconds}
        with connection.cursor() as cursor:
            cursor.execute(COUNT, values)
            count, left = cursor.fetchone() or (1, self.seconds)
            if count == 1:
                cursor.execute(FORGET)
        return Counted(limit=self.most, used=count, left=max(1, ceil(left)))

    def allows_address(self, request: HttpRequest) -> bool:
        """Count one more try from a request's address, as the lock-out after wrong passwords does."""
        return self.allows(get_client_ip_address(request) or "unknown")

    @property
    def excuse(self) -> str:
        """What to tell those who tried too often."""
        words = _("That was tried too often. Please wait %(minutes)d minutes, then try again.")
        return words % {"minutes": self.seconds // 60}


def _hash(who: str) -> str:
    """Return what stands for somebody in the table: whose address it was is not to be read there."""
    return salted_hmac("orders.throttle", who, algorithm="sha256").hexdigest()[:32]
