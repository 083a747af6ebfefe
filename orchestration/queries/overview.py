"""The overview: what needs attention, what waits, who is at work."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import QuerySet

from .. import conf
from ..alerting.alerts import late_effect_of
from ..database import clock, sql
from ..dead_letters import actions
from ..dead_letters.actions import Kind
from ..models import Step
from ..states import StepState
from . import counters
from .agent_facts import CAP, agents
from .audit_log import AuditEntry, latest
from .counters import Counts, Running
from .incidents import IncidentRow, top
from .leaders import Leader, leaders
from .next_step import AgentView
from .trends import Trends, trends

DEAD_LETTERS = {  # kinds by the beginnings of their alerts
    "submission": Kind.SUBMISSION, "status": Kind.STATUS, "dead_letter": Kind.INBOX,
}  # fmt: skip
SHOWN = 5  # rows of each list; the rest is a link away

# What is wrong with the machinery; incidents report the steps that failed.
ALERTS = """
SELECT a.id, a.fingerprint, a.severity, a.title, a.detail, a.count, a.first_seen, a.last_seen,
    (SELECT count(*) FROM (
        SELECT 1 FROM orchestration_step s WHERE s.alert_id = a.id LIMIT %(limit)s) AS counted)
FROM orchestration_alert a WHERE a.closed_at IS NULL AND a.incident_id IS NULL
ORDER BY a.last_seen DESC LIMIT %(shown)s
"""

INBOX = """
SELECT count(*), min(created_at) FROM (SELECT created_at FROM orchestration_submission
    WHERE refused_at IS NULL
    ORDER BY retry_at NULLS FIRST, priority DESC, turn, id LIMIT %(limit)s) AS counted
"""


@dataclass(frozen=True, kw_only=True)
class AlertView:
    """An open alert, and how many steps suffer from it at this moment."""

    id: int
    fingerprint: str
    severity: str
    title: str
    detail: str
    count: int
    first_seen: datetime
    last_seen: datetime
    open_steps: int

    @property
    def late_effect_of(self) -> UUID | None:
        """Return the task whose late effect the alert is about, if it is."""
        return late_effect_of(self.fingerprint)

    @property
    def overdue_workflow(self) -> str:
        """Return the workflow whose tasks are late, if that is what the alert is about."""
        kind, _, rest = self.fingerprint.partition("/")
        return rest if kind == "overdue" else ""

    @property
    def dead_letters(self) -> str:
        """Return how the page of dead letters names those that the alert is about, if it is."""
        what, _, rest = self.fingerprint.partition("/")
        kind = DEAD_LETTERS.get(what)
        return urlencode({"kind": kind.value, "name": rest.partition("/")[0]}) if kind else ""


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """Submissions that wait to become tasks, and dead letters."""

    waiting: int
    oldest: datetime | None
    dead: int


@dataclass(frozen=True, kw_only=True)
class Overview:
    """All that the overview shows."""

    now: datetime
    counts: Counts
    incidents: Sequence[IncidentRow]
    alerts: Sequence[AlertView]
    errors: Sequence[Step]
    operations: Sequence[Running]
    acts: Sequence[AuditEntry]
    retrying: Sequence[tuple[Step, AgentView | None]]
    kept: dict[str, AgentView]
    trends: Trends
    leaders: Sequence[Leader]
    inbox: Inbox
    patience: float = conf.WORKER_DEAD_AFTER_S

    @property
    def calm(self) -> bool:
        """Return whether nothing needs an operator."""
        return not (self.counts.errors or self.incidents or self.alerts)


def overview(range_key: str = "", *, personal: bool = False) -> Overview:
    """Read the overview: some twenty small queries for any number of tasks.

    `personal`: whether who asks may see what people wrote about tasks as it is.
    """
    now = clock.database_now()
    known = agents()
    return Overview(
        now=now,
        counts=counters.counts(CAP),
        incidents=top(SHOWN),
        alerts=_alerts(),
        errors=list(_steps().filter(process_state=StepState.ERROR).order_by("-ended_at")[:SHOWN]),
        operations=counters.operations(),
        acts=latest(SHOWN, personal=personal),
        retrying=[(step, known.get(step.agent)) for step in _retrying()],
        kept={name: agent for name, agent in known.items() if not agent.free},
        trends=trends(range_key, now),
        leaders=leaders(now),
        inbox=_inbox(),
    )


def _alerts() -> list[AlertView]:
    rows = sql.run(ALERTS, {"limit": CAP + 1, "shown": SHOWN})
    return [sql.record(AlertView, row) for row in rows]


def _steps() -> QuerySet[Step]:
    # what was sent and what came back may be large, and is not shown in a list
    return Step.objects.select_related("task").defer("request", "result", "task__data")


def _retrying() -> list[Step]:
    waiting = _steps().filter(process_state=StepState.PENDING, run_after__isnull=False)
    return list(waiting.order_by("run_after")[:SHOWN])


def _inbox() -> Inbox:
    waiting, oldest = sql.run(INBOX, {"limit": CAP + 1})[0]
    return Inbox(waiting=waiting, oldest=oldest, dead=actions.waiting(CAP + 1))
