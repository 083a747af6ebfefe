"""Leader election among supervisors: a lease on the database's clock (P4)."""

from dataclasses import dataclass

from . import conf, sql
from .models import Lease

NAME = "supervisor"

# One row, one statement: the holder renews, anybody else takes over when the lease has run out.
ACQUIRE = """
UPDATE orchestration_lease SET
    epoch = CASE WHEN holder = %(me)s THEN epoch ELSE epoch + 1 END,
    holder = %(me)s,
    renewed_at = clock_timestamp(),
    expires_at = clock_timestamp() + %(lease)s * interval '1 second'
WHERE name = %(name)s AND (holder = %(me)s OR expires_at <= clock_timestamp())
RETURNING epoch
"""

HOLDS = """
SELECT EXISTS (SELECT 1 FROM orchestration_lease WHERE name = %(name)s AND holder = %(me)s
    AND epoch = %(epoch)s AND expires_at > clock_timestamp())
"""

SWEPT = """
UPDATE orchestration_lease SET swept_at = clock_timestamp(),
    did = CASE %(did)s WHEN '' THEN did ELSE %(did)s END,
    did_at = CASE %(did)s WHEN '' THEN did_at ELSE clock_timestamp() END
WHERE name = %(name)s AND holder = %(me)s AND epoch = %(epoch)s
"""

RESIGN = """
UPDATE orchestration_lease SET expires_at = clock_timestamp()
WHERE name = %(name)s AND holder = %(me)s
"""


@dataclass(frozen=True, kw_only=True)
class Leadership:
    """The right to lead, for a while; `epoch` numbers the reigns."""

    holder: str
    epoch: int

    @property
    def actor(self) -> str:
        """Return the name under which a leader's acts are recorded."""
        return f"{self.holder} (epoch {self.epoch})"


def acquire(me: str) -> Leadership | None:
    """Become or stay the leader for `conf.LEASE` seconds; return None while another one leads.

    A former leader that wakes up late finds its lease taken. What it may still do in the
    transaction it slept in is guarded by the rows' own state, attempt and locks.
    """
    rows = sql.run(ACQUIRE, {"me": me, "name": NAME, "lease": conf.LEASE})
    return Leadership(holder=me, epoch=rows[0][0]) if rows else None


def holds(leadership: Leadership) -> bool:
    """Return whether a leadership still holds at this moment."""
    parameters = {"me": leadership.holder, "epoch": leadership.epoch, "name": NAME}
    return bool(sql.run(HOLDS, parameters)[0][0])


def note_sweep(leadership: Leadership, did: str) -> None:
    """Note that a sweep came to its end, and what it did, for people to see."""
    about = {"name": NAME, "me": leadership.holder, "epoch": leadership.epoch, "did": did[:200]}
    sql.run(SWEPT, about)


def resign(me: str) -> None:
    """Give the lease back at once, so that another supervisor need not wait for its end."""
    sql.run(RESIGN, {"me": me, "name": NAME})


def ensure() -> None:
    """Make the lease's row."""
    Lease.objects.get_or_create(name=NAME)
