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

from .. import conf
from ..database import clock, session, sql
from ..database.clock_jumps import ClockWatch, Reading
from ..models import Lease

logger = logging.getLogger(__name__)

SUPERVISOR = "supervisor"
HOUSEKEEPER = "housekeeper"
NAMES = (SUPERVISOR, HOUSEKEEPER)

# One row, one statement: the holder renews the lease; another process takes over when it has expired, or
# ends later than any lease can, which shows that the clock went back. Both get the database's time and
# its handled jumps. `holder` is empty while no process leads.
ACQUIRE = """
WITH mine AS (
    UPDATE orchestration_lease SET
        epoch = CASE WHEN holder = %(me)s THEN epoch ELSE epoch + 1 END,
        holder = %(me)s,
        renewed_at = clock_timestamp(),
        expires_at = clock_timestamp() + %(lease)s * interval '1 second'
    WHERE name = %(name)s AND (holder = %(me)s OR expires_at <= clock_timestamp()
        OR expires_at > clock_timestamp() + 2 * %(lease)s * interval '1 second')
    RETURNING epoch
)
SELECT mine.epoch, clock_timestamp(), last.at, last.seconds,
    (SELECT coalesce(sum(seconds), 0) FROM orchestration_clockjump), l.memory::text
FROM orchestration_lease l LEFT JOIN mine ON true
LEFT JOIN LATERAL (SELECT at, seconds FROM orchestration_clockjump ORDER BY id DESC LIMIT 1) AS last
    ON true
WHERE l.name = %(name)s
"""
# Sent before it. From here on the session waits only briefly for locks: a lock of another program must
# not keep the leader from its other duties.
BRIEFLY = f"SET lock_timeout = '{conf.SWEEP_LOCK_TIMEOUT_S}s';"

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

# The condition that the last sweep is at most `late` old by the clock as it is now. With scheduled sweeps it
# counts until the next is due.
SWEPT_LATELY = """coalesce(next_sweep_due > clock_timestamp(), false)
    OR swept_at BETWEEN clock_timestamp() - %(late)s AND clock_timestamp() + %(late)s"""

SWEPT = """
UPDATE orchestration_lease SET swept_at = clock_timestamp(), next_sweep_due = NULL,
    last_sweep_summary = coalesce(nullif(%(summary)s, ''), last_sweep_summary),
    last_sweep_summary_at = CASE %(summary)s WHEN '' THEN last_sweep_summary_at ELSE clock_timestamp() END
WHERE name = %(name)s AND holder = %(me)s AND epoch = %(epoch)s
"""

# The end of a sweep that a schedule started: the next one is not missed before `awaited`.
LEAVE = """
UPDATE orchestration_lease SET memory = %(memory)s,
    expires_at = clock_timestamp(), next_sweep_due = clock_timestamp() + %(awaited)s * interval '1 second'
WHERE name = %(name)s AND holder = %(me)s AND epoch = %(epoch)s
"""

RESIGN = """
UPDATE orchestration_lease SET expires_at = clock_timestamp()
WHERE name = %(name)s AND holder = %(me)s
"""


@dataclass(frozen=True, kw_only=True)
class Jump:
    """The last jump of the database's clock, `ago` seconds ago; `seconds` < 0: it went back."""

    seconds: float
    ago: float


@dataclass(frozen=True, kw_only=True)
class Leadership:
    """A lease that this process holds; `epoch` counts the changes of leader.

    `name` is the lease's. `at` is when it was renewed, on the database's clock; `jump` is that clock's
    last jump. `memory` is the state that the last scheduled sweep saved.
    """

    holder: str
    epoch: int
    name: str = SUPERVISOR
    at: datetime | None = None
    jump: Jump | None = None
    memory: Mapping[str, Any] = field(default_factory=dict)

    @property
    def actor(self) -> str:
        """Return the name that the leader's actions are recorded under."""
        return f"{self.holder} (epoch {self.epoch})"


def acquire(
    me: str, watch: ClockWatch | None = None, *, name: str = SUPERVISOR
) -> Leadership | None:
    """Become or stay the leader for `conf.LEASE_S` seconds; return None while another process leads.

    `watch` observes the database's clock; the leading supervisor handles a jump.
    A former leader that resumes late finds its lease taken. Its remaining writes are guarded by the rows
    themselves: each write locks its task, and names the state and attempt that it expects. So a sweep
    does not check the lease between batches: two sweeps at once do the same as one.
    """
    briefly = BRIEFLY
    if session.is_pooled(connection):  # the next transaction has another session
        session.limit_lock_waits(connection, conf.SWEEP_LOCK_TIMEOUT_S)
        briefly = ""
    before = clock.steady()
    rows = sql.run(briefly + ACQUIRE, {"me": me, "name": name, "lease": conf.LEASE_S})
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
    """Renews a lease from its own thread while a long sweep makes progress.

    The sweep calls `progress`. One that hangs loses the lease, and another process leads.
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
        self._thread.join(conf.LEASE_S)

    def progress(self) -> None:
        """Note that the sweep makes progress."""
        self._progress_at = time.monotonic()

    def _run(self) -> None:
        while not self._over.wait(conf.LEASE_S / 3):
            if time.monotonic() - self._progress_at > conf.SWEEP_STALLED_AFTER_S:
                logger.error("the sweep hangs: the lease is not renewed")
                break
            try:
                if not sql.run(RENEW, {**self._about, "lease": conf.LEASE_S}):
                    break  # it has expired, and may belong to another process
            except Error as error:
                logger.warning("the lease is not renewed: %s", sql.first_line(error))
                connection.close()
        connection.close()


def holds(leadership: Leadership) -> bool:
    """Return whether a leadership is still valid."""
    return bool(sql.run(HOLDS, _about(leadership))[0][0])


def note_sweep(leadership: Leadership, summary: str) -> None:
    """Record that a sweep has finished, with a summary for people."""
    sql.run(SWEPT, {**_about(leadership), "summary": summary[:200]})


def leave(leadership: Leadership, memory: Mapping[str, Any], *, awaited: float) -> None:
    """Release the lease after a sweep that a schedule started.

    `memory` is for the next sweep, which is not missed before `awaited` seconds have passed.
    """
    left = {"memory": json.dumps(memory), "awaited": awaited}
    sql.run(LEAVE, {**_about(leadership), **left})


def resign(me: str, *, name: str = SUPERVISOR) -> None:
    """Release the lease at once, so that another process need not wait until it expires."""
    sql.run(RESIGN, {"me": me, "name": name})


def ensure() -> None:
    """Create the rows of the leases."""
    for name in NAMES:
        Lease.objects.get_or_create(name=name)


def _about(leadership: Leadership) -> dict[str, Any]:
    return {"name": leadership.name, "me": leadership.holder, "epoch": leadership.epoch}
