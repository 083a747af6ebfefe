"""What may be wrong with the machinery, as the alerts about it say."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_high, median_low
from uuid import UUID

from django.db.models import QuerySet

from . import alerts, conf, leader, sql
from .leader import Jump
from .models import Alert, Worker
from .models.alert import Severity

PREFIX = "system/"
JUMPED = f"{PREFIX}clock_jumped"
CLOCK = f"{PREFIX}clock/"
OF_LEADERS = tuple(f"{PREFIX}{name}/" for name in leader.NAMES)  # each leader keeps its own
SEEN_EVERY = 10.0  # seconds: how exact an alert's `last_seen` is while it lasts

SEEN = """
UPDATE orchestration_alert SET last_seen = clock_timestamp() WHERE id IN (
    SELECT id FROM orchestration_alert WHERE closed_at IS NULL
        AND fingerprint = ANY(%(fingerprints)s)
        AND last_seen < (SELECT clock_timestamp()) - %(every)s * interval '1 second'
    FOR NO KEY UPDATE SKIP LOCKED)
"""

# Sessions of others that hold locks of rows of ours: by `lasting`, which names a transaction. Of other
# users' sessions an ordinary role is shown neither what they do nor from where.
BLOCKING = """
SELECT l.virtualtransaction, a.pid, coalesce(a.usename, ''), coalesce(a.application_name, ''),
    coalesce(host(a.client_addr), ''), coalesce(a.state, ''),
    extract(epoch FROM clock_timestamp() - a.xact_start)::float8, left(a.query, 60),
    array_to_string(array_agg(DISTINCT c.relname ORDER BY c.relname), ', ')
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_backend_pid()
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
  AND l.mode NOT IN ('AccessShareLock', 'ShareUpdateExclusiveLock')  -- these lock no row
  AND a.application_name <> current_setting('application_name')
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY a.pid
"""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Something that has lasted too long; `fingerprint` begins with `system/`."""

    fingerprint: str
    severity: Severity
    title: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Blocking:
    """A session of others in whose transaction rows of ours are locked; `open_for` in seconds.

    What the database does not show is empty, or None.
    """

    transaction: str
    pid: int
    user: str
    application: str
    host: str
    state: str
    open_for: float | None
    query: str
    tables: str


def blocking() -> list[Blocking]:
    """Return the sessions, not of our processes, that hold locks of rows at this moment."""
    return [sql.record(Blocking, row) for row in sql.run(BLOCKING, {})]


def blocked(sessions: Iterable[Blocking]) -> list[Trouble]:
    """Return a trouble for each session that has held locks of rows for too long."""
    return [
        Trouble(
            fingerprint=f"{PREFIX}blocked/{one.pid}",
            severity=Severity.WARNING,
            title=f"Another session has locked rows of ours for {conf.BLOCKING:g} s: pid {one.pid}",
            detail=f"What needs these rows waits. {_described(one)} To end it: SELECT "
            f"pg_terminate_backend({one.pid})",
        )
        for one in sessions
    ]


def _described(session: Blocking) -> str:
    """Return who holds locks, of what, and since when, as far as that is known."""
    parts = [
        f"User {session.user}",
        session.application,
        session.host and f"from {session.host}",
        session.state,
        "" if session.open_for is None else f"its transaction open for {session.open_for:.0f} s",
        f"locks in {session.tables}",
        session.query and f"last statement: {' '.join(session.query.split())}",
    ]
    return ", ".join(filter(None, parts)) + "."


def jumped(jump: Jump) -> Trouble:
    """Return the trouble of a jump of the database's clock."""
    way = "forward" if jump.seconds > 0 else "back"
    return Trouble(
        fingerprint=JUMPED,
        severity=Severity.CRITICAL,
        title=f"The database's clock jumped {way} by {abs(jump.seconds):.0f} s",
        detail=f"The last jump: {jump.seconds:+.0f} s. Deadlines and waits were moved by it, and "
        "nothing was undone for it. Find out what sets the clock of the database's host.",
    )


def clocks_off(alive: Sequence[Worker]) -> list[Trouble]:
    """Return a trouble for each host whose clock is off; one, if it is the database's that is."""
    offsets = [(worker.host, worker.clock_offset) for worker in alive]
    shown = [offset for _, offset in offsets] or [0.0]
    usual = min(
        median_low(shown), median_high(shown), key=abs
    )  # of two, the database's own is right
    if abs(usual) <= conf.CLOCK_JUMP:
        usual = 0.0
    odd = {host: offset for host, offset in offsets if abs(offset - usual) > conf.CLOCK_JUMP}
    off = {f"{CLOCK}{host}": (f"The clock of {host}", offset) for host, offset in odd.items()}
    if usual:
        off[f"{CLOCK}all"] = ("Most hosts' clock", usual)
    return [
        Trouble(
            fingerprint=fingerprint,
            severity=Severity.WARNING,
            title=f"{whose} is {abs(offset):.0f} s {'behind' if offset > 0 else 'ahead of'} the "
            "database's",
            detail="Tasks are not affected: all times are the database's. Find out which of them is "
            "right, and have the other set.",
        )
        for fingerprint, (whose, offset) in sorted(off.items())
    ]


def failing(leads: str, duties: Mapping[str, Exception]) -> list[Trouble]:
    """Return a trouble for each duty that the leading `leads` cannot do, and why."""
    return [
        Trouble(
            fingerprint=f"{PREFIX}{leads}/failing/{duty}",
            severity=Severity.CRITICAL,
            title=f"The {leads} fails to {duty}",
            detail=f"It tries again with each sweep, and does the rest. {_told(error)}",
        )
        for duty, error in duties.items()
    ]


def stuck(leads: str, tasks: Mapping[UUID, Exception]) -> list[Trouble]:
    """Return the trouble of tasks that the leading `leads` cannot recover, if there are any."""
    if not tasks:
        return []
    task, error = next(iter(tasks.items()))
    return [
        Trouble(
            fingerprint=f"{PREFIX}{leads}/stuck",
            severity=Severity.CRITICAL,
            title="Tasks cannot be recovered",
            detail=f"When this was noticed: {len(tasks)}, the first of them {task}. {_told(error)}",
        )
    ]


def keep(prefix: str, found: Iterable[Trouble], *, but: Collection[str] = ()) -> None:
    """Have exactly these troubles' alerts open, of all that begin with `prefix` and not with one of `but`."""
    wanted = {trouble.fingerprint: trouble for trouble in found}
    is_open = {
        fingerprint
        for fingerprint in open_alerts().filter(fingerprint__startswith=prefix)
        if not fingerprint.startswith(tuple(but))
    }
    for fingerprint in sorted(wanted.keys() - is_open):
        raise_trouble(wanted[fingerprint])
    if lasting := sorted(wanted.keys() & is_open):
        # not raised again: an alert's count is of events, and this is one that lasts
        sql.run(SEEN, {"fingerprints": lasting, "every": SEEN_EVERY})
    for fingerprint in sorted(is_open - wanted.keys()):
        alerts.close(fingerprint, wait=False)


def open_alerts() -> "QuerySet[Alert, str]":
    """Return the fingerprints of the alerts that are open."""
    return Alert.objects.filter(closed_at=None).values_list("fingerprint", flat=True)


def raise_trouble(trouble: Trouble) -> None:
    """Alert people of a trouble, or once more."""
    alerts.raise_alert(
        trouble.fingerprint,
        severity=trouble.severity,
        title=trouble.title,
        detail=trouble.detail,
    )


def raise_jump(seconds: float) -> None:
    """Alert people that the database's clock jumped by so many seconds, or once more."""
    raise_trouble(jumped(Jump(seconds=seconds, ago=0.0)))


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {sql.first_line(error)}"
