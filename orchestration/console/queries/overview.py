"""The overview: what needs attention, what waits, who is at work."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from ... import conf
from ...cluster.leaders import Leader, leaders
from ...database import clock, sql
from ...database.capped_counts import CAP
from ...dead_letters import actions
from ...models import Step
from ...models.alert import Severity
from ...models.inbox import SUBMISSIONS
from ...states import StepState
from ...waiting.agent_facts import agents
from ...waiting.agent_view import AgentView
from ...waiting.next_step import most_failures
from . import causes, counters
from .audit_log import latest
from .audit_sources import AuditEntry
from .causes import Cause
from .counters import Counts, Running
from .trends import Trends, trends

SHOWN = 5  # rows of each list; the rest is a link away

# What is wrong with the machinery: what was not acknowledged first, then what is critical; incidents report
# the steps that failed.
ALERTS = """
SELECT a.id, a.fingerprint, a.severity, a.title, a.detail, a.count, a.first_seen, a.last_seen,
    a.acknowledged_by, (SELECT count(*) FROM (
        SELECT 1 FROM orchestration_step s WHERE s.alert_id = a.id LIMIT %(limit)s) AS counted)
FROM orchestration_alert a WHERE a.closed_at IS NULL AND a.incident_id IS NULL
ORDER BY a.acknowledged_at IS NOT NULL, a.severity, a.last_seen DESC LIMIT %(shown)s
"""

INBOX = f"""
SELECT count(*), min(created_at) FROM (SELECT created_at FROM orchestration_submission m
    WHERE {SUBMISSIONS.where(SUBMISSIONS.open)}
    ORDER BY {SUBMISSIONS.sql_order} LIMIT %(limit)s) AS counted
"""  # noqa: S608 - put together from constants


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
    acknowledged_by: str
    open_steps: int


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
    causes: Sequence[Cause]
    alerts: Sequence[AlertView]
    errors: Sequence[Step]
    operations: Sequence[Running]
    acts: Sequence[AuditEntry]
    retrying: Sequence[tuple[Step, int | None]]  # and how many failures it may have
    trends: Trends
    leaders: Sequence[Leader]
    inbox: Inbox
    patience: float = conf.WORKER_DEAD_AFTER_S

    @property
    def affected(self) -> Sequence[Cause]:
        """Return the causes that affect tasks now."""
        return [cause for cause in self.causes if cause.tasks]

    @property
    def others(self) -> int:
        """Return how many causes affect tasks besides the first."""
        return max(0, len(self.affected) - 1)

    @property
    def blocked(self) -> int:
        """Return how many tasks wait at agents that let nothing through, or are held."""
        return causes.blocked_tasks(self.causes)

    @property
    def critical(self) -> Sequence[AlertView]:
        """Return the alerts after which nothing more happens until a person acts."""
        return [alert for alert in self.alerts if alert.severity == Severity.CRITICAL]

    @property
    def urgent(self) -> bool:
        """Return whether something lasts until a person acts."""
        lasting = any(cause.needs_person for cause in self.causes)
        return bool(self.counts.errors or self.critical or lasting)

    @property
    def calm(self) -> bool:
        """Return whether nothing is wrong."""
        return not (self.counts.errors or self.causes or self.alerts)


def overview(range_key: str = "", *, personal: bool = False) -> Overview:
    """Read the overview: some twenty small queries for any number of tasks.

    `personal`: whether who asks may see what people wrote about tasks as it is.
    """
    now = clock.database_now()
    known = agents(now)
    return Overview(
        now=now,
        counts=counters.counts(CAP),
        causes=causes.causes(known),
        alerts=_alerts(),
        errors=list(_steps().filter(process_state=StepState.ERROR).order_by("-ended_at")[:SHOWN]),
        operations=counters.operations(),
        acts=latest(SHOWN, personal=personal),
        retrying=[(step, _most_failures(step, known.get(step.agent))) for step in _retrying()],
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
    waiting = _steps().filter(
        process_state=StepState.PENDING, run_after__isnull=False, attempt__gt=0
    )
    return list(waiting.order_by("run_after")[:SHOWN])


def _most_failures(step: Step, agent: AgentView | None) -> int | None:
    return most_failures(step, agent.of_step(step.task.workflow, step.name)) if agent else None


def _inbox() -> Inbox:
    waiting, oldest = sql.run(INBOX, {"limit": CAP + 1})[0]
    return Inbox(waiting=waiting, oldest=oldest, dead=actions.waiting(CAP + 1))
