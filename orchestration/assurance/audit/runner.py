"""Run the audit: read the ledgers, check slice by slice, store the violations, raise alerts.

A run by itself looks at what changed since the last one, and once a day at everything.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import islice
from tempfile import TemporaryFile
from types import MappingProxyType

from django.db import transaction

from ... import registry
from ...alerting import alerts
from ...applications.audits import MAX_VIOLATIONS, Check, Part, Scope, Violation
from ...database import clock, sql
from ...models import AuditRun, SupervisorPolicy
from ...models.alert import Severity
from ...models.fields import DatabaseNow
from . import past, snapshot
from .check import INVARIANTS
from .checks.attempts import COUNTED, FENCED, ONCE, ORDER
from .checks.children import CHILDREN
from .checks.compensation import COMPENSATION
from .checks.idempotency_keys import KEYS
from .checks.incidents import INCIDENTS
from .checks.left_behind import LEFT_BEHIND
from .checks.not_before import NOT_BEFORE
from .checks.operations import OPERATIONS
from .checks.skipped_steps import BY_HAND, SKIPPED
from .checks.status_messages import STATUS_MESSAGES
from .checks.task_integrity import LOSS, TWINS, UNOWNED
from .checks.time_limits import TIME_LIMITS

HOURLY, DAILY = "hourly", "daily"  # `AuditRun.by` of the runs that start by themselves
RESUME_WITHIN_S = 60.0  # the engine resumes work that was left behind within this time
DEPLOYED_WITHIN_S = 3600.0  # two releases run side by side for less
# A transaction is open for less: what it writes has a time of before its commit
COMMITS_WITHIN_S = 600.0
MAX_STORED = 1_000  # violations that a run's row keeps
OF_ITSELF = "by IN ('hourly', 'daily')"
# Whether a run is due by itself, and whether it looks at everything; one that did not end is repeated.
DUE = f"""
SELECT d.whole AND NOT EXISTS (SELECT FROM orchestration_auditrun WHERE by = 'daily'
        AND started_at > n.at - p.audit_every * interval '1 second'),
    NOT EXISTS (SELECT FROM orchestration_auditrun WHERE {OF_ITSELF}
        AND started_at > n.at - p.audit_every * interval '1 second')
FROM orchestration_supervisorpolicy p
CROSS JOIN LATERAL (SELECT clock_timestamp() AS at) n
CROSS JOIN LATERAL (SELECT p.whole_audit_every > 0 AND NOT EXISTS (
    SELECT FROM orchestration_auditrun WHERE by = 'daily' AND ended_at IS NOT NULL
        AND started_at > n.at - p.whole_audit_every * interval '1 second') AS whole) d
WHERE p.audit_every > 0
"""  # noqa: S608 - put together from constants
# Until when every change is seen by a run that begins now.
UNTIL = f"""
SELECT least((SELECT clock_timestamp()) - interval '{COMMITS_WITHIN_S} seconds', min(xact_start))
FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""  # noqa: S608 - put together from constants
# How far the runs by themselves have come. What they may not have found yet, as it was not late, is
# looked at again.
SINCE = f"""
SELECT max(until) - %(again)s * interval '1 second' FROM orchestration_auditrun
WHERE {OF_ITSELF} AND ended_at IS NOT NULL
"""  # noqa: S608 - put together from constants
LOCK = 0x5A5A_0001  # serializes the start of hourly runs

Each = Callable[[], AbstractContextManager[None]]
CHECKS = (
    *LOSS, *TIME_LIMITS, *NOT_BEFORE, *TWINS, *UNOWNED, *ONCE, *ORDER, *COMPENSATION, *FENCED, *COUNTED,
    *KEYS, *STATUS_MESSAGES, *LEFT_BEHIND, *OPERATIONS, *INCIDENTS, *SKIPPED, *BY_HAND, *CHILDREN,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """The number of tasks, the duration and the violations of a run."""

    tasks: int
    seconds: float
    violations: list[Violation] = field(default_factory=list)


def due() -> bool:
    """Return whether the next scheduled run is due."""
    return any(any(row) for row in sql.run(DUE, {}))


def run(
    by: str,
    *,
    ledgers: bool = True,
    since: datetime | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> AuditResult | None:
    """Audit everything, or what changed `since`; return None if an hourly run is not due.

    An hourly run decides by itself what it looks at; one that does not look at everything reads no
    ledgers. Call it outside any transaction. Raises `Unreadable` if a ledger cannot be read; a run by
    itself then goes on without ledgers, and an alert says so.
    """
    row = _begin(by, since)
    if row is None:
        return None
    started = time.monotonic()
    cut = clock.database_now()
    ledgers = ledgers and (row.since is None or by != HOURLY)
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
        finding = _Finding(ledgers=frozenset(read), since=row.since, supervised=past.supervised())
        with snapshot.with_tables(file):
            tasks = finding.slices(cut, report)
            finding.once()
    report(f"{len(CHECKS)} checks of the engine, and those of {len(registry.audits)} applications")
    violations = finding.sorted()
    _keep(row, tasks, violations)
    _alert(violations, whole=ledgers and row.since is None)
    return AuditResult(
        tasks=tasks, seconds=round(time.monotonic() - started, 1), violations=violations
    )


def find(ledgers: Collection[str] = ()) -> list[Violation]:
    """Run every check over the filled tables; `ledgers` are the agents whose ledgers were read.

    All of it in the caller's transaction.
    """
    finding = _Finding(ledgers=frozenset(ledgers))
    finding.of_slice(snapshot.Slice())
    finding.once()
    return finding.sorted()


@dataclass(kw_only=True)
class _Finding:
    """The violations that an audit has found so far."""

    ledgers: frozenset[str]
    since: datetime | None = None
    supervised: bool = True
    violations: list[Violation] = field(default_factory=list)
    times: Counter[Check] = field(default_factory=Counter)

    def slices(self, cut: datetime, report: Callable[[str], None]) -> int:
        """Check all tasks that the audit looks at, each slice in a snapshot of its own; return how many."""
        changed = self.since is not None
        if self.since is not None:
            snapshot.find_changed(self.since, cut)
        tasks = 0
        for part in snapshot.slices(changed=changed):
            snapshot.empty()
            with snapshot.reading():
                tasks += snapshot.fill(cut, part, changed=changed)
                self.of_slice(part)
            report(f"{tasks:,} tasks")
        return tasks

    def of_slice(self, part: snapshot.Slice) -> None:
        """Check the tasks of a slice that was loaded, and, if all is checked, the rows of its ranges."""
        self._run(Scope.TASKS)
        if self.since is None:
            self._run(Scope.RANGE, asdict(part))
        self._applications(Scope.TASKS)

    def once(self) -> None:
        """Run the checks that concern no task, or all: each in a snapshot of its own."""
        self._run(Scope.ALL, each=snapshot.reading)
        with snapshot.reading():
            self._applications(Scope.ALL)

    def sorted(self) -> list[Violation]:
        """Return the violations, in order."""
        return sorted(
            self.violations,
            key=lambda violation: (violation.invariant, violation.reference, violation.problem),
        )

    def _run(
        self,
        scope: Scope,
        also: Mapping[str, object] = MappingProxyType({}),
        each: Each = nullcontext,
    ) -> None:
        values = {**parameters(self.since, supervised=self.supervised), **also}
        for check in CHECKS:
            due = check.scope == scope and (self.ledgers or not check.ledgers)
            # one cause may break it for each task: then more of them say no more
            if due and self.times[check] < MAX_VIOLATIONS:
                with each():
                    violations = check.violations(values)
                self.times[check] += len(violations)
                self.violations += violations

    def _applications(self, scope: Scope) -> None:
        part = Part(scope=scope, ledgers=self.ledgers, since=self.since)
        for _, audit in sorted(registry.audits.items()):
            self.violations += islice(audit(part), MAX_VIOLATIONS)


def parameters(since: datetime | None, *, supervised: bool) -> dict[str, object]:
    """Return the values that the queries of all checks take, besides a slice's ranges."""
    agents = sorted(registry.agents)
    return {"since": since, "supervised": supervised, "agents": agents, **_limits()}


def _limits() -> dict[str, float]:
    """Return for how long what the checks look at may last, in seconds."""
    policy = SupervisorPolicy.objects.first() or SupervisorPolicy()
    return {
        "lag": RESUME_WITHIN_S,
        "undelivered": max(policy.status_undelivered, RESUME_WITHIN_S),
        "undo_stuck": max(policy.undo_stuck, RESUME_WITHIN_S),
        "deployed": DEPLOYED_WITHIN_S,
    }


def _begin(by: str, since: datetime | None) -> AuditRun | None:
    """Record the start of a run, and what it looks at; None if another hourly one has just started."""
    with transaction.atomic():
        ((until,),) = sql.run(UNTIL, {})
        if by != HOURLY:
            return AuditRun.objects.create(by=by, since=since, until=until)
        sql.run("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": LOCK})
        whole, lately = next(iter(sql.run(DUE, {})), (False, False))
        ((before,),) = sql.run(SINCE, {"again": _limits()["undelivered"]})
        if whole or (lately and before is None):
            return AuditRun.objects.create(by=DAILY, until=until)
        return AuditRun.objects.create(by=by, since=before, until=until) if lately else None


def _keep(row: AuditRun, tasks: int, violations: Collection[Violation]) -> None:
    row.ended_at = DatabaseNow()
    row.tasks = tasks
    row.violations = [asdict(violation) for violation in list(violations)[:MAX_STORED]]
    row.save(update_fields=["ended_at", "tasks", "violations"])


def _alert(violations: Collection[Violation], *, whole: bool) -> None:
    """Raise an alert per broken invariant; a run over everything closes those of the others."""
    counts = Counter(violation.invariant for violation in violations)
    for number, name in INVARIANTS.items():
        fingerprint = f"audit/{number}"
        if counts[number]:
            first = next(violation for violation in violations if violation.invariant == number)
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
