"""How the machinery is: the figures of the dashboard's pages, by the same queries."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from prometheus_client.core import Metric

from ... import conf
from ...database.capped_counts import CAP
from ...decisions.wait_reasons import Reason
from ...models.alert import Severity
from ...states import GateState
from ...waiting.wait_reasons import waiting_because
from ..queries import schedules
from ..queries.agents import AgentRow, agents_page
from ..queries.counters import counts, open_alerts, waits
from ..queries.system import System
from ..queries.trends import trends
from .families import gauge

CAPPED = "counted to 1,000, which 1,001 stands for"
PAST = "in the last hour"
MOST_WAITS = 10_000


def metrics(now: System) -> Iterator[Metric]:
    """Yield every metric; about twenty small queries, however many tasks there are."""
    yield from _machinery(now)
    yield from _backlogs(now)
    yield from _tasks()
    yield from _waits()
    yield from _schedules()
    yield from _agents()
    yield from _hour(now.now)


def _machinery(now: System) -> Iterator[Metric]:
    queues = now.queues
    yield gauge("redis_up", "Whether Redis answers", of=[([], now.redis)])
    yield gauge(
        "leader", "Whether one leads, or a schedule starts the next", ["process"],
        of=[([leader.name], leader.held or leader.awaited) for leader in now.leaders],
    )  # fmt: skip
    yield gauge(
        "leader_sweeps", "Whether it sweeps", ["process"],
        of=[([leader.name], leader.sweeps or leader.awaited) for leader in now.leaders],
    )  # fmt: skip
    yield gauge(
        "workers", "Living workers", ["queue"], of=[([row.name], row.workers) for row in queues]
    )
    yield gauge(
        "messages", "Messages in its inbox on Redis", ["queue"],
        of=[([row.name], row.depth.messages) for row in queues if row.depth],
    )  # fmt: skip
    if now.audit:
        violations = len(now.standing.violations) if now.standing else 0
        yield gauge("audit_violations", "What the last audit found", of=[([], violations)])
        age = _since(now.audit.started_at, now.now)
        yield gauge("audit_age_seconds", "How long ago it began", of=[([], age)])
    alerts = open_alerts()
    yield gauge(
        "alerts_open", "Open alerts", ["severity"],
        of=[([level], alerts.get(level, 0)) for level in Severity.values],
    )  # fmt: skip


def _backlogs(now: System) -> Iterator[Metric]:
    """Yield what waits for a person, and what was set aside."""
    backlogs = now.backlogs
    waiting = {
        "submission": (backlogs.submissions, backlogs.oldest_submission),
        "task_request": (backlogs.requests, backlogs.oldest_request),
        "status_message": (backlogs.statuses, backlogs.oldest_status),
        "notification": (backlogs.notifications, backlogs.oldest_notification),
    }
    yield gauge(
        "outbox", f"Rows that wait to be passed on, {CAPPED}", ["what"],
        of=[([what], count) for what, (count, _) in waiting.items()],
    )  # fmt: skip
    yield gauge(
        "outbox_oldest_seconds", "How long the oldest of them has waited", ["what"],
        of=[([what], _since(oldest, now.now)) for what, (_, oldest) in waiting.items()],
    )  # fmt: skip
    aside = {
        "submission": backlogs.submissions_refused,
        "status_message": backlogs.statuses_refused,
    }
    yield gauge(
        "set_aside", f"Rows that wait for a person, {CAPPED}", ["what"],
        of=[([what], count) for what, count in aside.items()],
    )  # fmt: skip


def _tasks() -> Iterator[Metric]:
    by_condition = vars(counts(CAP))
    yield gauge(
        "tasks", f"Tasks (retrying: steps) that are so now, {CAPPED}", ["condition"],
        of=[([condition], count) for condition, count in by_condition.items()],
    )  # fmt: skip


def _waits() -> Iterator[Metric]:
    waiting = waits(MOST_WAITS)
    first = f"of the {MOST_WAITS:,} that are due first"
    yield gauge(
        "awaiting", f"Steps that await a result, {first}", ["workflow", "step"],
        of=[([*key], count.awaiting) for key, count in waiting.items() if count.awaiting],
    )  # fmt: skip
    yield gauge(
        "awaiting_late", "Of these, those past the end of their wait", ["workflow", "step"],
        of=[([*key], count.late) for key, count in waiting.items() if count.awaiting],
    )  # fmt: skip
    yield gauge(
        "delayed", f"Steps that wait for their time before they begin, {first}", ["workflow", "step"],
        of=[([*key], count.delayed) for key, count in waiting.items() if count.delayed],
    )  # fmt: skip


def _schedules() -> Iterator[Metric]:
    """Yield the figures of schedules: as gauges, as a schedule that is deleted takes its own along."""
    figures = schedules.figures()
    for name, documentation in (
        ("paused", "Schedules that are paused"),
        ("late", "Schedules past their time"),
        ("failing", "Schedules that cannot submit"),
        ("waiting", "Schedules with a due time that waits for the end of the last task"),
        ("submitted", "Tasks that schedules submitted"),
        ("skipped", "Due times that were skipped: the last task had not ended"),
        ("missed", "Due times that passed while nothing could be submitted"),
    ):
        yield gauge(
            f"schedule_{name}", documentation, ["workflow"],
            of=[([workflow], counts[name]) for workflow, counts in figures.items()],
        )  # fmt: skip


def _agents() -> Iterator[Metric]:
    page = agents_page(conf.WORKER_DEAD_AFTER_S)
    rows, now = page.rows, page.now
    yield gauge(
        "gate", "The state that an agent's circuit breaker is in", ["agent", "state"],
        of=[
            ([row.name, state], row.gate.state == state) for row in rows for state in GateState.values
        ],
    )  # fmt: skip
    yield gauge(
        "held", "Whether all its steps are held", ["agent"],
        of=[([row.name], row.hold is not None) for row in rows],
    )  # fmt: skip
    yield gauge(
        "window", "Requests it may have in flight", ["agent"],
        of=[([row.name], row.policy.window) for row in rows],
    )  # fmt: skip
    yield gauge(
        "in_flight", "Requests it has in flight", ["agent"],
        of=[([row.name], row.load.in_flight) for row in rows],
    )  # fmt: skip
    yield gauge(
        "waiting", f"Steps that wait for it, {CAPPED}", ["agent"],
        of=[([row.name], row.load.waiting) for row in rows],
    )  # fmt: skip
    because = waiting_because(
        {row.name: row.view for row in rows}, {row.name: row.load.in_flight for row in rows}, now
    )
    yield gauge(
        "waiting_because", f"Pending steps by why they wait, {CAPPED}", ["agent", "reason"],
        of=[
            ([row.name, reason], because.get((row.name, reason), 0))
            for row in rows for reason in Reason
        ],
    )  # fmt: skip
    yield gauge(
        "waiting_oldest_seconds", "How long the oldest of them has waited", ["agent"],
        of=[([row.name], _since(row.load.waiting_since, now)) for row in rows],
    )  # fmt: skip
    yield from _webhooks(rows)


def _webhooks(rows: Sequence[AgentRow]) -> Iterator[Metric]:
    of_agents = [(row.name, row.webhooks) for row in rows if row.webhooks]
    yield gauge(
        "webhook_reports", f"What services reported in the last 24 hours, {CAPPED}", ["agent", "what"],
        of=[
            ([name, what], count)
            for name, webhooks in of_agents
            for what, count in (("received", webhooks.received), ("unknown", webhooks.unknown))
        ],
    )  # fmt: skip
    yield gauge(
        "webhooks_refused", "Webhooks that the open alert about refused ones counts", ["agent"],
        of=[([name], webhooks.refused or 0) for name, webhooks in of_agents],
    )  # fmt: skip


def _hour(now: datetime) -> Iterator[Metric]:
    """Yield what happened lately: as gauges, since its roll-ups are not kept for ever."""
    past = trends("1h", now)
    did = {
        what: sum(getattr(point, what) for point in past.tasks)
        for what in ("created", "processed", "errors", "undone")
    }
    yield gauge(
        "hour_tasks", f"Tasks {PAST}", ["what"], of=[([what], count) for what, count in did.items()]
    )
    yield gauge(
        "hour_task_seconds", f"From creation to the end, of those processed {PAST}", ["quantile"],
        of=[([q], took) for q, took in (("0.5", past.p50), ("0.95", past.p95)) if took is not None],
    )  # fmt: skip
    names = ["workflow", "step", "direction", "agent"]
    steps = [(step, [step.workflow, step.step, step.direction, step.agent]) for step in past.steps]
    yield gauge(
        "hour_attempts", f"Attempts that ended {PAST}", [*names, "outcome"],
        of=[
            ([*labels, outcome], getattr(step, outcome))
            for step, labels in steps
            for outcome in ("done", "failed", "rejected")
        ],
    )  # fmt: skip
    yield gauge(
        "hour_attempt_seconds", f"From dispatch to reply, of those done {PAST}", [*names, "quantile"],
        of=[
            ([*labels, q], took)
            for step, labels in steps
            for q, took in (("0.5", step.p50), ("0.95", step.p95))
            if took is not None
        ],
    )  # fmt: skip


def _since(then: datetime | None, now: datetime) -> float:
    return max(0.0, (now - then).total_seconds()) if then else 0.0
