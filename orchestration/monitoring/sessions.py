"""Find sessions of other programs that have locked rows of the engine for too long."""

from collections.abc import Iterable
from dataclasses import dataclass

from .. import conf
from ..alerting.alerts import AlertReport
from ..database import sql
from ..models.alert import Severity
from ..supervision.conditions import PREFIX

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


def blocked(sessions: Iterable[Blocking]) -> list[AlertReport]:
    """Return a report on each session that has held locks of rows for too long."""
    return [
        AlertReport(
            fingerprint=f"{PREFIX}blocked/{session.pid}",
            severity=Severity.WARNING,
            title="Another session has locked rows of this database for "
            f"{conf.BLOCKING_ALERT_AFTER_S:g} s: pid {session.pid}",
            detail=f"What needs these rows waits. {_described(session)} To end it: SELECT "
            f"pg_terminate_backend({session.pid})",
        )
        for session in sessions
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
