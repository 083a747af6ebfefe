"""A run of the audit: read the ledgers, check in one snapshot, keep what was found, alert."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime

from django.db import connection, transaction

from .. import alerts, registry, sql
from ..models import AuditRun, SupervisorPolicy
from ..models.alert import Severity
from ..models.fields import DatabaseNow
from . import books
from .bulk import BULK
from .causes import CAUSES
from .history import COUNTED, FENCED, ONCE, ORDER
from .keys import KEYS
from .lives import LEFT_BEHIND, LOSS, TWINS
from .told import TOLD
from .undo import UNDO
from .violation import INVARIANTS, Violation

HOURLY = "hourly"  # who starts the runs that come by themselves
LAG = 60.0  # seconds within which the engine promises to resume whatever lies
KEPT = 1_000  # violations that a run's row keeps
DUE = """
SELECT EXISTS (SELECT FROM orchestration_supervisorpolicy p
    WHERE p.audit_every > 0 AND NOT EXISTS (SELECT FROM orchestration_auditrun
        WHERE by = %(by)s AND started_at > (SELECT clock_timestamp()) - p.audit_every * interval '1 second'))
"""
LOCK = 0x5A5A_0001  # of whoever begins an hourly run

CHECKS = (
    *LOSS, *TWINS, *ONCE, *ORDER, *UNDO, *FENCED, *COUNTED, *KEYS, *TOLD, *LEFT_BEHIND, *BULK,
    *CAUSES,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run looked at, how long it took, and what it found."""

    tasks: int
    seconds: float
    violations: list[Violation] = field(default_factory=list)


def due() -> bool:
    """Return whether it is time for the next run by itself."""
    return bool(sql.run(DUE, {"by": HOURLY})[0][0])


def run(
    by: str,
    *,
    ledgers: bool = True,
    since: datetime | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Result | None:
    """Audit everything, or what changed `since`; return None if an hourly run is not due.

    Call it outside any transaction. Raises `Unreadable` if a ledger cannot be read; an hourly run
    then goes on without ledgers, and an alert says so.
    """
    row = _begin(by)
    if row is None:
        return None
    started = time.monotonic()
    cut = books.prepare()
    read: set[str] = set()
    if ledgers:
        try:
            read = books.read_ledgers(report)
            alerts.close("audit/ledgers")
        except books.Unreadable as error:
            if by != HOURLY:
                raise
            ledgers = False
            _cannot_read(error)
            books.prepare()
    with _snapshot():
        tasks = books.fill(cut, since)
        report(f"{tasks:,} tasks")
        found = find(read, report)
    books.drop()
    _keep(row, tasks, found)
    _alert(found, whole=ledgers and since is None)
    return Result(tasks=tasks, seconds=round(time.monotonic() - started, 1), violations=found)


def find(
    ledgers: Collection[str] = (), report: Callable[[str], None] = lambda _: None
) -> list[Violation]:
    """Run every check over the filled tables; `ledgers` are the agents whose books were read."""
    policy = SupervisorPolicy.objects.first() or SupervisorPolicy()
    parameters = {"lag": LAG, "undelivered": max(policy.status_undelivered, LAG)}
    found: list[Violation] = []
    for check in CHECKS:
        if ledgers or not check.ledgers:
            found += check.violations(parameters)
    report(f"{len(CHECKS)} checks of the engine")
    for name, audit in sorted(registry.audits.items()):
        found += audit(frozenset(ledgers))
        report(f"checks of {name}")
    return sorted(found, key=lambda one: (one.invariant, one.reference, one.trouble))


def _begin(by: str) -> AuditRun | None:
    """Note that a run has begun; of several hourly ones at once, the first."""
    with transaction.atomic():
        if by == HOURLY:
            sql.run("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": LOCK})
            if not due():
                return None
        return AuditRun.objects.create(by=by)


@contextmanager
def _snapshot() -> Iterator[None]:
    """See the database as it is at one moment, and change nothing."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SET LOCAL statement_timeout = '10min'")
            cursor.execute("SET LOCAL work_mem = '64MB'")
        yield


def _keep(row: AuditRun, tasks: int, found: Collection[Violation]) -> None:
    row.ended_at = DatabaseNow()
    row.tasks = tasks
    row.violations = [asdict(one) for one in list(found)[:KEPT]]
    row.save(update_fields=["ended_at", "tasks", "violations"])


def _alert(found: Collection[Violation], *, whole: bool) -> None:
    """Raise an alert per broken invariant; a run that saw everything closes those it found whole."""
    counts = Counter(one.invariant for one in found)
    for number, name in INVARIANTS.items():
        fingerprint = f"audit/{number}"
        if counts[number]:
            first = next(one for one in found if one.invariant == number)
            alerts.raise_alert(
                fingerprint,
                severity=Severity.CRITICAL,
                title=f"Audit: invariant {number} ({name}) is broken {counts[number]} times",
                detail=f"{first.reference}: {first.trouble}. {first.mend}",
                count=counts[number],
            )
        elif whole:
            alerts.close(fingerprint)


def _cannot_read(error: Exception) -> None:
    alerts.raise_alert(
        "audit/ledgers",
        severity=Severity.WARNING,
        title="Audit: a partner's ledger cannot be read, so nothing was compared with it",
        detail=str(error),
    )
