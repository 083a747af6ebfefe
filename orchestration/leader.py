"""Leader election among processes of one kind: a lease on the database's clock (P4)."""

import json
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import Error, connection

from . import clock, conf, sql
from .clock_watch import ClockWatch, Reading
from .models import Lease

logger = logging.getLogger(__name__)

SUPERVISOR = "supervisor"
HOUSEKEEPER = "housekeeper"
NAMES = (SUPERVISOR, HOUSEKEEPER)

# One row, one statement: the holder renews, anybody else takes over when the lease has run out, or
# runs for longer than one can: then the clock went back since. What the clock shows, and how its
# jumps were dealt with, comes back to both.
# From here on the session waits for any lock but shortly: one that a stranger holds must not keep the
# leader from the rest of its duties. `holder` is empty while none leads.
ACQUIRE = f"""
SET lock_timeout = '{conf.SWEEP_LOCK_WAIT}s';
WITH ours AS (
    UPDATE orchestration_lease SET
        epoch = CASE WHEN holder = %(me)s THEN epoch ELSE epoch + 1 END,
        holder = %(me)s,
        renewed_at = clock_timestamp(),
        expires_at = clock_timestamp() + %(lease)s * interval '1 second'
    WHERE name = %(name)s AND (holder = %(me)s OR expires_at <= clock_timestamp()
        OR expires_at > clock_timestamp() + 2 * %(lease)s * interval '1 second')
    RETURNING epoch
)
SELECT ours.epoch, clock_timestamp(), last.at, last.seconds,
    (SELECT coalesce(sum(seconds), 0) FROM orchestration_clockjump), l.memory::text
FROM orchestration_lease l LEFT JOIN ours ON true
LEFT JOIN LATERAL (SELECT at, seconds FROM orchestration_clockjump ORDER BY id DESC LIMIT 1) AS last
    ON true
WHERE l.name = %(name)s
"""  # noqa: S608 - a constant of our own

RENEW = """
UPDATE orchestration_lease SET renewed_at = clock_timestamp(),
    expires_at = clock_timestamp() + %(lease)s * interval '1 second'
WHERE name = %(name)s AND holder = %(me)s AND epoch = %(epoch)s AND expires_at > clock_timestamp()
RETURNING true
"""

HOLDS = """
SELECT EXISTS (SELECT 1 FROM orchestration_lease WHERE name = %(name)s AND holder = %(me)s
    AND epoch = %(epoch)s AND expires_at > clock_timestamp())
"""

SWEPT = """
UPDATE orchestration_lease SET swept_at = clock_timestamp(), awaited_until = NULL,
    did = CASE %(did)s WHEN '' THEN did ELSE %(did)s END,
    did_at = CASE %(did)s WHEN '' THEN did_at ELSE clock_timestamp() END
WHERE name = %(name)s AND holder = %(me)s AND epoch = %(epoch)s
"""

# What a sweep that was started by a schedule leaves behind: no other one is missed for a while.
LEAVE = """
UPDATE orchestration_lease SET memory = %(memory)s,
    expires_at = clock_timestamp(), awaited_until = clock_timestamp() + %(awaited)s * interval '1 second'
WHERE name = %(name)s AND holder = %(me)s AND epoch = %(epoch)s
"""

RESIGN = """
UPDATE orchestration_lease SET expires_at = clock_timestamp()
WHERE name = %(name)s AND holder = %(me)s
"""


@dataclass(frozen=True, kw_only=True)
class Jump:
    """The last jump of the database's clock, `ago` seconds before; `seconds` < 0: it went back."""

    seconds: float
    ago: float


@dataclass(frozen=True, kw_only=True)
class Leadership:
    """The right to lead, for a while; `epoch` numbers the reigns.

    `name` says what is led. `at` is when it was renewed, on the database's clock; `jump` is that
    clock's last jump. `memory` is what the last sweep that a schedule started has left behind.
    """

    holder: str
    epoch: int
    name: str = SUPERVISOR
    at: datetime | None = None
    jump: Jump | None = None
    memory: Mapping[str, Any] = field(default_factory=dict)

    @property
    def actor(self) -> str:
        """Return the name under which a leader's acts are recorded."""
        return f"{self.holder} (epoch {self.epoch})"


def acquire(
    me: str, watch: ClockWatch | None = None, *, name: str = SUPERVISOR
) -> Leadership | None:
    """Become or stay the leader for `conf.LEASE` seconds; return None while another one leads.

    `watch` takes in what the database's clock shows; a jump is for the leading supervisor to deal with.
    A former leader that wakes up late finds its lease taken. What it may still do, then or in the rest
    of its sweep, is guarded by the rows themselves: each write locks its task, and names the state and
    attempt that it expects. So a sweep does not ask between its batches whether the lease still holds:
    two at once do what one does.
    """
    before = clock.steady()
    rows = sql.run(ACQUIRE, {"me": me, "name": name, "lease": conf.LEASE})
    after = clock.steady()
    if not rows:
        return None
    epoch, now, jumped_at, seconds, handled, memory = rows[0]
    if watch is not None:
        reading = Reading(now=now.timestamp(), handled=handled, before=before, after=after)
        watch.see(reading, leading=epoch is not None and name == SUPERVISOR)
    if epoch is None:
        return None
    jump = Jump(seconds=seconds, ago=(now - jumped_at).total_seconds()) if jumped_at else None
    return Leadership(
        holder=me, epoch=epoch, name=name, at=now, jump=jump, memory=json.loads(memory)
    )


class Renewal:
    """Renews a lease from a thread of its own while a sweep takes long, as long as that gets on.

    The sweep reports its `progress`: one that hangs loses the lease, and another process leads.
    """

    def __init__(self, leadership: Leadership) -> None:
        self._about = _about(leadership)
        self._progress_at = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def __enter__(self) -> "Renewal":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(conf.LEASE)

    def progress(self) -> None:
        """Note that the sweep gets on."""
        self._progress_at = time.monotonic()

    def _run(self) -> None:
        while not self._over.wait(conf.LEASE / 3):
            if time.monotonic() - self._progress_at > conf.SWEEP_HANGS:
                logger.error("the sweep hangs: the lease is not renewed")
                break
            try:
                if not sql.run(RENEW, {**self._about, "lease": conf.LEASE}):
                    break  # it has run out, and may be another's
            except Error as error:
                logger.warning("the lease is not renewed: %s", sql.first_line(error))
                connection.close()
        connection.close()


def holds(leadership: Leadership) -> bool:
    """Return whether a leadership still holds at this moment."""
    return bool(sql.run(HOLDS, _about(leadership))[0][0])


def note_sweep(leadership: Leadership, did: str) -> None:
    """Note that a sweep came to its end, and what it did, for people to see."""
    sql.run(SWEPT, {**_about(leadership), "did": did[:200]})


def leave(leadership: Leadership, memory: Mapping[str, Any], *, awaited: float) -> None:
    """Give the lease back after the one sweep that a schedule started.

    `memory` is for the next one; until `awaited` seconds have passed it is not missed.
    """
    left = {"memory": json.dumps(memory), "awaited": awaited}
    sql.run(LEAVE, {**_about(leadership), **left})


def resign(me: str, *, name: str = SUPERVISOR) -> None:
    """Give the lease back at once, so that another process need not wait for its end."""
    sql.run(RESIGN, {"me": me, "name": name})


def ensure() -> None:
    """Make the leases' rows."""
    for name in NAMES:
        Lease.objects.get_or_create(name=name)


def _about(leadership: Leadership) -> dict[str, Any]:
    return {"name": leadership.name, "me": leadership.holder, "epoch": leadership.epoch}
