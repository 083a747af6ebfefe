"""How the database server is: connections, locks, the oldest transaction, and what it counts."""

from dataclasses import dataclass

from ...database import sql

LOOK = """
SELECT
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::int,
    pg_database_size(d.datid),
    (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(xact_start)), 0)::float8
        FROM pg_stat_activity WHERE datid = d.datid AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'),
    (SELECT count(*) FROM pg_stat_activity WHERE datid = d.datid AND wait_event_type = 'Lock'),
    d.xact_commit, d.xact_rollback, d.deadlocks, d.blks_hit, d.blks_read
FROM pg_stat_database d WHERE d.datname = current_database()
"""


@dataclass(frozen=True, kw_only=True)
class Database:
    """Sessions of other roles show their transactions to members of pg_read_all_stats only."""

    connections: int
    most: int
    size: int  # bytes
    oldest: float  # seconds
    waiting: int
    commits: int
    rollbacks: int
    deadlocks: int
    hits: int
    reads: int


def look() -> Database:
    """Ask once."""
    return sql.record(Database, sql.run(LOOK, {})[0])
