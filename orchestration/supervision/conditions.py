"""Conditions of the machinery that raise alerts, and the alerts of a sweep."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_high, median_low
from uuid import UUID

from django.db.models import QuerySet

from .. import conf
from ..alerting import alerts
from ..cluster import leader_election
from ..cluster.leader_election import Jump
from ..database import sql
from ..models import Alert, Worker
from ..models.alert import Severity

PREFIX = "system/"
JUMPED = f"{PREFIX}clock_jumped"
CLOCK = f"{PREFIX}clock/"
OF_LEADERS = tuple(
    f"{PREFIX}{name}/" for name in leader_election.NAMES
)  # each leader manages its own
SEEN_EVERY = 10.0  # seconds between two updates of an alert's `last_seen`

SEEN = """
UPDATE orchestration_alert SET last_seen = clock_timestamp() WHERE id IN (
    SELECT id FROM orchestration_alert WHERE closed_at IS NULL
        AND fingerprint = ANY(%(fingerprints)s)
        AND last_seen < (SELECT clock_timestamp()) - %(every)s * interval '1 second'
    FOR NO KEY UPDATE SKIP LOCKED)
"""

# Sessions of other programs that hold locks on this database's rows. An ordinary role cannot see the
# statement and host of other users' sessions.
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
class Condition:
    """A fault of the machinery that has lasted too long; `fingerprint` begins with `system/`."""

    fingerprint: str
    severity: Severity
    title: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Blocking:
    """Another program's session that has locked rows; `open_for` is in seconds.

    A field that the database does not show is empty or None.
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
    """Return the sessions of other programs that hold locks on rows now."""
    return [sql.record(Blocking, row) for row in sql.run(BLOCKING, {})]


def blocked(sessions: Iterable[Blocking]) -> list[Condition]:
    """Return a condition for each session that has held locks of rows for too long."""
    return [
        Condition(
            fingerprint=f"{PREFIX}blocked/{one.pid}",
            severity=Severity.WARNING,
            title="Another session has locked rows of this database for "
            f"{conf.BLOCKING_ALERT_AFTER_S:g} s: pid {one.pid}",
            detail=f"What needs these rows waits. {_described(one)} To end it: SELECT "
            f"pg_terminate_backend({one.pid})",
        )
        for one in sessions
    ]


def _described(session: Blocking) -> str:
    """Return a sentence about a session: user, host, age, tables, statement, as far as known."""
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


def jumped(jump: Jump) -> Condition:
    """Return the condition of a jump of the database's clock."""
    way = "forward" if jump.seconds > 0 else "back"
    small = abs(jump.seconds) <= conf.CLOCK_JUMP_S
    moved = "stay as they are" if small else "were moved accordingly"
    return Condition(
        fingerprint=JUMPED,
        severity=Severity.WARNING if small else Severity.CRITICAL,
        title=f"The database's clock jumped {way} by {abs(jump.seconds):.0f} s",
        detail=f"The last jump: {jump.seconds:+.0f} s. Deadlines and waits {moved}, and no "
        "task was undone. Check what sets the clock of the database's host.",
    )


def clocks_off(alive: Sequence[Worker]) -> list[Condition]:
    """Return a condition for each host whose clock is off; one for all if the database's clock is."""
    offsets = [(worker.host, worker.clock_offset) for worker in alive]
    shown = [offset for _, offset in offsets] or [0.0]
    usual = min(
        median_low(shown), median_high(shown), key=abs
    )  # of two, trust the database's clock
    if abs(usual) <= conf.CLOCK_JUMP_S:
        usual = 0.0
    odd = {host: offset for host, offset in offsets if abs(offset - usual) > conf.CLOCK_JUMP_S}
    off = {f"{CLOCK}{host}": (f"The clock of {host}", offset) for host, offset in odd.items()}
    if usual:
        off[f"{CLOCK}all"] = ("Most hosts' clock", usual)
    return [
        Condition(
            fingerprint=fingerprint,
            severity=Severity.WARNING,
            title=f"{whose} is {abs(offset):.0f} s {'behind' if offset > 0 else 'ahead of'} the "
            "database's",
            detail="Tasks are not affected: all times come from the database. Check which clock is "
            "right, and correct the other.",
        )
        for fingerprint, (whose, offset) in sorted(off.items())
    ]


def failing(leads: str, duties: Mapping[str, Exception]) -> list[Condition]:
    """Return a condition for each duty that fails in the leading `leads`."""
    return [
        Condition(
            fingerprint=f"{PREFIX}{leads}/failing/{duty}",
            severity=Severity.CRITICAL,
            title=f"The {leads} fails to {duty}",
            detail=f"It retries with each sweep, and does its other duties. {_described_error(error)}",
        )
        for duty, error in duties.items()
    ]


def stuck(leads: str, tasks: Mapping[UUID, Exception]) -> list[Condition]:
    """Return a condition if there are tasks that the leading `leads` cannot recover."""
    if not tasks:
        return []
    task, error = next(iter(tasks.items()))
    return [
        Condition(
            fingerprint=f"{PREFIX}{leads}/stuck",
            severity=Severity.CRITICAL,
            title="Tasks cannot be recovered",
            detail=f"When this was noticed: {len(tasks)}, the first of them {task}. "
            f"{_described_error(error)}",
        )
    ]


def keep(prefix: str, found: Iterable[Condition], *, but: Collection[str] = ()) -> None:
    """Open and close alerts so that exactly these are open below `prefix`, except those below `but`."""
    wanted = {condition.fingerprint: condition for condition in found}
    is_open = {
        fingerprint
        for fingerprint in open_alerts().filter(fingerprint__startswith=prefix)
        if not fingerprint.startswith(tuple(but))
    }
    for fingerprint in sorted(wanted.keys() - is_open):
        raise_condition(wanted[fingerprint])
    if lasting := sorted(wanted.keys() & is_open):
        # not raised again: an alert counts events, and this one event lasts
        sql.run(SEEN, {"fingerprints": lasting, "every": SEEN_EVERY})
    for fingerprint in sorted(is_open - wanted.keys()):
        alerts.close(fingerprint, wait=False)


def open_alerts() -> "QuerySet[Alert, str]":
    """Return the fingerprints of the alerts that are open."""
    return Alert.objects.filter(closed_at=None).values_list("fingerprint", flat=True)


def raise_condition(condition: Condition) -> None:
    """Raise the alert of a condition."""
    alerts.raise_alert(
        condition.fingerprint,
        severity=condition.severity,
        title=condition.title,
        detail=condition.detail,
    )


def raise_jump(seconds: float) -> None:
    """Raise the alert that the database's clock jumped by `seconds`."""
    raise_condition(jumped(Jump(seconds=seconds, ago=0.0)))


def _described_error(error: Exception) -> str:
    return f"{type(error).__name__}: {sql.first_line(error)}"
