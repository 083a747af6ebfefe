"""The database: its version, what its settings promise, and whether it has what this release needs."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.core.checks import CheckMessage, Error, Info
from django.core.checks import Warning as Warn
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

from ... import conf
from ...database import sql
from ...messaging import queue_names
from .subjects import Subject, Unanswered

OLDEST = 15  # the first with unique constraints in which nulls are equal, which holds have
LONGEST_S = 120  # of a statement or pause: the roll-ups wait for no transaction that lasts longer
CLOCK_S = 1.0  # a difference of clocks that is worth a warning; `conf.CLOCK_JUMP_S` is an error
FULL = 0.8  # of the connections
IDLE_S = 4 * conf.HEARTBEAT_INTERVAL_S  # processes use a connection at each heartbeat
# Connections of a small installation on two machines, besides twice `work --all`: two supervisors and a
# housekeeper of two each, and two web processes of four threads.
BESIDES_QUEUES = 2 * 2 + 2 + 2 * 4
TIMEOUTS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
LIMITS = ("max_connections", "superuser_reserved_connections", "reserved_connections")
SETTINGS = (
    *TIMEOUTS, *LIMITS, "idle_session_timeout", "transaction_isolation", "synchronous_commit",
    "synchronous_standby_names", "fsync", "full_page_writes", "autovacuum", "track_counts", "server_encoding",
)  # fmt: skip

FACTS = """
SELECT extract(epoch FROM clock_timestamp())::float8,
    current_setting('server_version_num')::int / 10000,
    (SELECT jsonb_object_agg(name, setting) FROM pg_settings WHERE name = ANY(%s))::text,
    current_setting('transaction_read_only') = 'on',
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    r.rolsuper, r.rolconnlimit, d.datconnlimit,
    ARRAY(SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace
        AND reloptions && '{autovacuum_enabled=false,autovacuum_enabled=off,autovacuum_enabled=0}'),
    current_user::text, current_database()::text
FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()
"""


@dataclass(frozen=True, kw_only=True)
class Database:
    """The facts. `settings` are those in effect on a connection of this process, times in ms."""

    clock_ahead: float  # seconds; positive if the database's clock is ahead of this machine's
    version: int
    settings: Mapping[str, str]
    read_only: bool
    connections: int
    superuser: bool
    role_limit: int  # -1 for none
    database_limit: int
    not_vacuumed: Sequence[str]
    user: str
    name: str
    queues: int
    unapplied: Sequence[str]
    unknown: Sequence[str]  # migrations that were applied by another release


def gather() -> Database:
    """Ask the database, over a connection such as all processes have."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")  # the answer to the next statement times the clocks
            before = time.time()
            cursor.execute(FACTS, [list(SETTINGS)])
            now, version, settings, *others = cursor.fetchone()
            here = (before + time.time()) / 2
        executor = MigrationExecutor(connection)
    except OperationalError as error:
        raise Unanswered(f"Postgres does not answer: {sql.first_line(error)}.") from error
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    extra = executor.loader.applied_migrations.keys() - executor.loader.disk_migrations.keys()
    installed = {app for app, _ in executor.loader.disk_migrations}
    names = tuple(Database.__dataclass_fields__)[3:11]
    return Database(
        clock_ahead=now - here,
        version=version,
        settings=json.loads(settings),
        **dict(zip(names, others, strict=True)),
        queues=len(queue_names.declared()),
        unapplied=[f"{migration.app_label}.{migration.name}" for migration, _ in plan],
        unknown=sorted(f"{app}.{name}" for app, name in extra if app in installed),
    )


subject = Subject(
    "database",
    gather,
    remedy="Start Postgres, and correct DATABASE_URL: its host, port, name, user and password.",
)


@subject.check
def version(database: Database) -> Iterator[CheckMessage]:
    """Check that Postgres is new enough."""
    if database.version < OLDEST:
        yield Error(
            f"Postgres is version {database.version}; the engine needs {OLDEST} or later.",
            hint="Upgrade the server (pg_upgrade), then run `manage.py migrate`.",
        )


@subject.check
def encoding(database: Database) -> Iterator[CheckMessage]:
    """Check that every text can be stored."""
    if (encoding_name := database.settings["server_encoding"]) != "UTF8":
        yield Error(
            f"The database's encoding is {encoding_name}: texts with other characters cannot be stored.",
            hint=f"Create it again: CREATE DATABASE {database.name} ENCODING 'UTF8' TEMPLATE template0.",
        )


@subject.check
def read_only(database: Database) -> Iterator[CheckMessage]:
    """Check that the server takes writes."""
    if database.read_only:
        yield Error(
            "The server takes no writes: it is a standby, or the database or role is read-only.",
            hint="Name the primary in DATABASE_URL (or all hosts), or promote this server; "
            f"otherwise ALTER DATABASE {database.name} RESET default_transaction_read_only, or ALTER ROLE.",
        )


@subject.check
def isolation(database: Database) -> Iterator[CheckMessage]:
    """Check the isolation level that the guards of all transitions are written for."""
    if (level := database.settings["transaction_isolation"]) != "read committed":
        yield Error(
            f"Transactions are {level}; the engine is written for read committed. With another level its "
            "statements fail wherever two processes meet.",
            hint=f"ALTER DATABASE {database.name} RESET default_transaction_isolation; the same for "
            f"ALTER ROLE {database.user}, and in postgresql.conf.",
        )


@subject.check
def synchronous_commit(database: Database) -> Iterator[CheckMessage]:
    """Check that what was committed is not lost when the server, or the primary, is."""
    level, standbys = (
        database.settings[name] for name in ("synchronous_commit", "synchronous_standby_names")
    )
    if level == "off":
        yield Error(
            "synchronous_commit is off: a crash of the server loses accepted tasks and the results of steps.",
            hint=f"ALTER DATABASE {database.name} RESET synchronous_commit; the same for "
            f"ALTER ROLE {database.user}, and set it to on in postgresql.conf.",
        )
    elif standbys and level == "local":
        yield Warn(
            "synchronous_commit is local: standbys are named, and commits do not wait for them.",
            hint="Set synchronous_commit to on.",
        )
    elif not standbys:
        yield Info(
            "No synchronous standby: what was committed is on one server alone.",
            hint="If that server may be lost, replicate: docs/run/install.md, Replication.",
        )


@subject.check
def durability(database: Database) -> Iterator[CheckMessage]:
    """Check that the files survive a crash of the machine."""
    for name in ("fsync", "full_page_writes"):
        if database.settings[name] == "off":
            yield Error(
                f"{name} is off: a crash of the machine can destroy the database.",
                hint=f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf();",
            )


@subject.check
def autovacuum(database: Database) -> Iterator[CheckMessage]:
    """Check that autovacuum is on: queues turn over all their rows."""
    for name in ("autovacuum", "track_counts"):
        if database.settings[name] == "off":
            yield Error(
                f"{name} is off: tables and indexes grow with every change, and everything slows down.",
                hint=f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf();",
            )
    if database.not_vacuumed:
        names = ", ".join(database.not_vacuumed)
        yield Warn(
            f"Autovacuum is off for {names}.",
            hint=f"ALTER TABLE {database.not_vacuumed[0]} RESET (autovacuum_enabled);",
        )


@subject.check
def timeouts(database: Database) -> Iterator[CheckMessage]:
    """Check that no process can hold its locks without end; by start-up options or the role."""
    values = {name: int(database.settings[name]) / 1000 for name in TIMEOUTS}
    for name, seconds in values.items():
        if not 0 < seconds <= LONGEST_S:
            value = f"{seconds:g} s" if seconds else "off"
            yield Warn(
                f"{name} is {value} on this process's connections: a process that hangs holds up others, and "
                f"charts and metrics leave out what is committed after more than {LONGEST_S} s.",
                hint="Have the pooler let start-up options through, or set it for the role: "
                f"ALTER ROLE {database.user} SET {name} = …; docs/run/configure.md has the usual values.",
            )
    if 0 < values["statement_timeout"] <= values["lock_timeout"]:
        yield Warn(
            "lock_timeout is not below statement_timeout: a statement that waits for a lock ends as one that "
            "is too slow.",
            hint=f"ALTER ROLE {database.user} SET lock_timeout = '8s', and statement_timeout = '30s'.",
        )


@subject.check
def idle_connections(database: Database) -> Iterator[CheckMessage]:
    """Check that connections stay open between two heartbeats."""
    if 0 < (seconds := int(database.settings.get("idle_session_timeout", 0)) / 1000) < IDLE_S:
        yield Warn(
            f"idle_session_timeout is {seconds:g} s: heartbeats and looks at what is due fail, as their "
            "connections are closed meanwhile.",
            hint=f"ALTER ROLE {database.user} SET idle_session_timeout = 0, or a minute at least.",
        )


@subject.check
def connections(database: Database) -> Iterator[CheckMessage]:
    """Check that there are connections for all processes."""
    most, *reserved = (int(database.settings.get(name, 0)) for name in LIMITS)
    limits = (limit for limit in (database.role_limit, database.database_limit) if limit >= 0)
    room = min([most - sum(reserved), *limits])
    needed = 2 * (database.queues + 1) + BESIDES_QUEUES
    hint = "Raise max_connections (or the role's or database's CONNECTION LIMIT), or put a pooler in between."
    if room < needed:
        yield Warn(
            f"The server has {room} connections for this role; a small installation takes {needed}.",
            hint=hint,
        )
    elif database.connections > FULL * room:
        yield Warn(f"{database.connections} of {room} connections are in use.", hint=hint)


@subject.check
def superuser(database: Database) -> Iterator[CheckMessage]:
    """Note a role that may do more than it needs to."""
    if database.superuser:
        yield Info(
            f"The role {database.user} is a superuser: who finds a hole in a process owns the server.",
            hint="Let a role of its own own the database, and put it into DATABASE_URL.",
        )


@subject.check
def migrations(database: Database) -> Iterator[CheckMessage]:
    """Check that the tables are those of this release."""
    if database.unapplied:
        first, count = database.unapplied[0], len(database.unapplied)
        yield Error(
            f"{count} migrations are not applied, from {first} on.",
            hint="Run `manage.py migrate` before the processes of this release start.",
        )
    if database.unknown:
        yield Info(
            f"The database has migrations that this release lacks, such as {database.unknown[-1]}.",
            hint="Nothing, after a roll-back: the tables stay usable. Otherwise install the newer release.",
        )


@subject.check
def clock(database: Database) -> Iterator[CheckMessage]:
    """Check that this machine's clock is the database's."""
    ahead = database.clock_ahead
    if abs(ahead) > CLOCK_S:
        kind = Error if abs(ahead) > conf.CLOCK_JUMP_S else Warn
        word = "ahead of" if ahead > 0 else "behind"
        yield kind(
            f"The database's clock is {abs(ahead):.1f} s {word} this machine's.",
            hint="Correct the one that is wrong by NTP (`chronyc tracking`); the database's slowly: "
            "docs/run/runbook.md#clock-wrong.",
        )
