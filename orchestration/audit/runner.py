"""Run the audit: read the ledgers, check in one snapshot, store the violations, raise alerts."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from tempfile import TemporaryFile

from django.db import connection, transaction

from .. import registry
from ..alerting import alerts
from ..database import sql
from ..models import AuditRun, SupervisorPolicy
from ..models.alert import Severity
from ..models.fields import DatabaseNow
from . import snapshot
from .check import INVARIANTS, Violation
from .checks.attempts import COUNTED, FENCED, ONCE, ORDER
from .checks.compensation import COMPENSATION
from .checks.idempotency_keys import KEYS
from .checks.incidents import INCIDENTS
from .checks.operations import OPERATIONS
from .checks.status_messages import STATUS_MESSAGES
from .checks.task_integrity import LEFT_BEHIND, LOSS, TWINS, UNOWNED

HOURLY = "hourly"  # `AuditRun.by` of the runs that start by themselves
RESUME_WITHIN_S = 60.0  # the engine resumes work that was left behind within this time
MAX_STORED = 1_000  # violations that a run's row keeps
DUE = """
SELECT EXISTS (SELECT FROM orchestration_supervisorpolicy p
    WHERE p.audit_every > 0 AND NOT EXISTS (SELECT FROM orchestration_auditrun
        WHERE by = %(by)s AND started_at > (SELECT clock_timestamp()) - p.audit_every * interval '1 second'))
"""
LOCK = 0x5A5A_0001  # serializes the start of hourly runs

CHECKS = (
    *LOSS, *TWINS, *UNOWNED, *ONCE, *ORDER, *COMPENSATION, *FENCED, *COUNTED, *KEYS, *STATUS_MESSAGES,
    *LEFT_BEHIND, *OPERATIONS, *INCIDENTS,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """The number of tasks, the duration and the violations of a run."""

    tasks: int
    seconds: float
    violations: list[Violation] = field(default_factory=list)


def due() -> bool:
    """Whether the next run by itself is due."""
    return bool(sql.run(DUE, {"by": HOURLY})[0][0])


def run(
    by: str,
    *,
    ledgers: bool = True,
    since: datetime | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> AuditResult | None:
    """Audit everything, or what changed `since`; return None if an hourly run is not due.

    Call it outside any transaction. Raises `Unreadable` if a ledger cannot be read; an hourly run
    then goes on without ledgers, and an alert says so.
    """
    row = _begin(by)
    if row is None:
        return None
    started = time.monotonic()
    cut = snapshot.now()
    read: set[str] = set()
    with TemporaryFile("w+", newline="", encoding="utf-8") as file:
        if ledgers:
            try:
                read = snapshot.read_ledgers(file, report)
                alerts.close("audit/ledgers")
            except snapshot.Unreadable as error:
                if by != HOURLY:
                    raise
                ledgers = False
                _cannot_read(error)
                file.seek(0)
                file.truncate()
        with _snapshot():
            snapshot.store(file)
            tasks = snapshot.fill(cut, since)
            report(f"{tasks:,} tasks")
            found = find(read, report)
    _keep(row, tasks, found)
    _alert(found, whole=ledgers and since is None)
    return AuditResult(tasks=tasks, seconds=round(time.monotonic() - started, 1), violations=found)


def find(
    ledgers: Collection[str] = (), report: Callable[[str], None] = lambda _: None
) -> list[Violation]:
    """Run every check over the filled tables; `ledgers` are the agents whose ledgers were read."""
    policy = SupervisorPolicy.objects.first() or SupervisorPolicy()
    parameters = {
        "lag": RESUME_WITHIN_S,
        "undelivered": max(policy.status_undelivered, RESUME_WITHIN_S),
    }
    found: list[Violation] = []
    for check in CHECKS:
        if ledgers or not check.ledgers:
            found += check.violations(parameters)
    report(f"{len(CHECKS)} checks of the engine")
    for name, audit in sorted(registry.audits.items()):
        found += audit(frozenset(ledgers))
        report(f"checks of {name}")
    return sorted(found, key=lambda one: (one.invariant, one.reference, one.problem))


def _begin(by: str) -> AuditRun | None:
    """Record the start of a run; None if another hourly one has just started."""
    with transaction.atomic():
        if by == HOURLY:
            sql.run("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": LOCK})
            if not due():
                return None
        return AuditRun.objects.create(by=by)


@contextmanager
def _snapshot() -> Iterator[None]:
    """Read the database at one moment, beside temporary tables, and leave nothing behind."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SET LOCAL statement_timeout = '10min'")
            cursor.execute("SET LOCAL work_mem = '64MB'")
        snapshot.prepare()
        sql.run("SET TRANSACTION READ ONLY", {})
        yield
        transaction.set_rollback(True)


def _keep(row: AuditRun, tasks: int, found: Collection[Violation]) -> None:
    row.ended_at = DatabaseNow()
    row.tasks = tasks
    row.violations = [asdict(one) for one in list(found)[:MAX_STORED]]
    row.save(update_fields=["ended_at", "tasks", "violations"])


def _alert(found: Collection[Violation], *, whole: bool) -> None:
    """Raise an alert per broken invariant; a run over everything closes those of the others."""
    counts = Counter(one.invariant for one in found)
    for number, name in INVARIANTS.items():
        fingerprint = f"audit/{number}"
        if counts[number]:
            first = next(one for one in found if one.invariant == number)
            alerts.raise_alert(
                fingerprint,
                severity=Severity.CRITICAL,
                title=f"Audit: invariant {number} ({name}) is broken {counts[number]} times",
                detail=f"{first.reference}: {first.problem}. {first.remedy}",
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
