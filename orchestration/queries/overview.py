"""The overview: what needs attention, what waits, who is at work."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from .. import conf, leader, queues, registry, sql
from ..models import Lease, Step, Submission, Worker
from ..states import StepState, TaskState
from .agents import agents, database_now
from .outlook import AgentView

CAP = 10_000  # counts go no further: "10,000+" says enough, and costs the same at any size
SHOWN = 20  # rows of each list; the rest is a link away
MOST_WORKERS = 200

STATES = """
SELECT state, (SELECT count(*) FROM (
    SELECT 1 FROM orchestration_task t WHERE t.state = s.state LIMIT %(limit)s) AS counted)
FROM unnest(%(states)s::text[]) AS s (state)
"""

ALERTS = """
SELECT a.id, a.fingerprint, a.severity, a.title, a.detail, a.count, a.first_seen, a.last_seen,
    (SELECT count(*) FROM (
        SELECT 1 FROM orchestration_step s WHERE s.alert_id = a.id LIMIT %(limit)s) AS counted)
FROM orchestration_alert a WHERE a.closed_at IS NULL
ORDER BY a.last_seen DESC LIMIT %(shown)s
"""

GATES = """
SELECT g.agent,
    (SELECT count(*) FROM orchestration_step s WHERE s.agent = g.agent
        AND s.process_state = 'processing' AND s.locked_by IS NOT NULL),
    (SELECT count(*) FROM (SELECT 1 FROM orchestration_step s WHERE s.agent = g.agent
        AND s.process_state = 'pending' AND s.run_after IS NULL AND s.held_by_id IS NULL
        LIMIT %(limit)s) AS counted),
    (SELECT min(s.pending_since) FROM orchestration_step s WHERE s.agent = g.agent
        AND s.process_state = 'pending')
FROM unnest(%(agents)s::text[]) AS g (agent)
"""

INBOX = """
SELECT count(*), min(created_at) FROM (SELECT created_at FROM orchestration_submission
    WHERE refused_at IS NULL ORDER BY id LIMIT %(limit)s) AS counted
"""


@dataclass(frozen=True, kw_only=True)
class StateCount:
    """How many tasks are in a state."""

    state: str
    count: int


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
    suffering: int

    @property
    def overdue_workflow(self) -> str:
        """Return the workflow whose tasks are late, if that is what the alert is about."""
        kind, _, rest = self.fingerprint.partition("/")
        return rest if kind == "overdue" else ""


@dataclass(frozen=True, kw_only=True)
class GateView:
    """An agent's gate: who is inside, who waits."""

    agent: str
    settings: AgentView
    in_flight: int
    waiting: int
    waiting_since: datetime | None


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process and whether it gave a sign of life lately."""

    worker: Worker
    alive: bool
    leads: bool


@dataclass(frozen=True, kw_only=True)
class Leader:
    """Who leads the supervisors; `held` while its lease runs."""

    lease: Lease | None
    held: bool
    patience: float = conf.LEASE


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """Submissions that wait to become tasks, and those that cannot."""

    waiting: int
    oldest: datetime | None
    set_aside: Sequence[Submission]


@dataclass(frozen=True, kw_only=True)
class Overview:
    """All that the overview shows; `problems` is empty when the machinery is sound."""

    now: datetime
    problems: Sequence[str]
    states: Sequence[StateCount]
    alerts: Sequence[AlertView]
    errors: Sequence[Step]
    retrying: Sequence[tuple[Step, AgentView | None]]
    gates: Sequence[GateView]
    processes: Sequence[Process]
    leader: Leader
    inbox: Inbox
    patience: float = conf.ALIVE


def overview() -> Overview:
    """Read the overview: a dozen small queries, whatever the number of tasks."""
    now = database_now()
    known = agents()
    led = _leader(now)
    processes = _processes(now, led)
    return Overview(
        now=now,
        problems=_problems(led, processes),
        states=_states(),
        alerts=_alerts(),
        errors=list(_steps().filter(process_state=StepState.ERROR).order_by("-ended_at")[:SHOWN]),
        retrying=[(step, known.get(step.agent)) for step in _retrying()],
        gates=_gates(known),
        processes=processes,
        leader=led,
        inbox=_inbox(),
    )


def _states() -> list[StateCount]:
    rows = sql.run(STATES, {"states": TaskState.values, "limit": CAP + 1})
    return [StateCount(state=state, count=count) for state, count in rows]


def _alerts() -> list[AlertView]:
    names = list(AlertView.__dataclass_fields__)
    rows = sql.run(ALERTS, {"limit": CAP + 1, "shown": SHOWN})
    return [AlertView(**dict(zip(names, row, strict=True))) for row in rows]


def _steps() -> QuerySet[Step]:
    # what was sent and what came back may be large, and is not shown in a list
    return Step.objects.select_related("task").defer("request", "result", "task__data")


def _retrying() -> list[Step]:
    waiting = _steps().filter(process_state=StepState.PENDING, run_after__isnull=False)
    return list(waiting.order_by("run_after")[:SHOWN])


def _gates(known: dict[str, AgentView]) -> list[GateView]:
    rows = sql.run(GATES, {"agents": list(known), "limit": CAP + 1})
    return [
        GateView(
            agent=agent,
            settings=known[agent],
            in_flight=in_flight,
            waiting=waiting,
            waiting_since=since,
        )
        for agent, in_flight, waiting, since in rows
    ]


def _leader(now: datetime) -> Leader:
    lease = Lease.objects.filter(name=leader.NAME).first()
    return Leader(lease=lease, held=bool(lease and lease.holder and lease.expires_at > now))


def _processes(now: datetime, led: Leader) -> list[Process]:
    oldest = now - timedelta(seconds=conf.ALIVE)
    holder = led.lease.holder if led.lease and led.held else None
    return [
        Process(worker=worker, alive=worker.seen_at > oldest, leads=worker.instance == holder)
        for worker in Worker.objects.order_by("queue", "instance")[:MOST_WORKERS]
    ]


def _inbox() -> Inbox:
    waiting, oldest = sql.run(INBOX, {"limit": CAP + 1})[0]
    set_aside = Submission.objects.filter(refused_at__isnull=False).defer("data")
    return Inbox(
        waiting=waiting, oldest=oldest, set_aside=list(set_aside.order_by("-refused_at")[:SHOWN])
    )


def _problems(led: Leader, processes: Sequence[Process]) -> list[str]:
    """Return what is wrong with the machinery itself, a sentence each."""
    found = []
    if not _redis_answers():
        found.append("Redis is down: nothing is lost, nothing is processed.")
    if not led.held:
        found.append("No supervisor leads: what fails is neither retried nor reported.")
    served = {process.worker.queue for process in processes if process.alive}
    if unserved := sorted(_needed_queues() - served):
        names = ", ".join(f"“{name}”" for name in unserved)
        found.append(
            f"No worker serves {names}: start one. Until then its work waits, and what was sent to "
            "an agent fails and is tried again."
        )
    return found


def _needed_queues() -> set[str]:
    statuses = {queues.STATUS_PREFIX + name for name in registry.receivers}
    return {*queues.ANSWERS, *registry.agents, *statuses}


def _redis_answers() -> bool:
    try:
        queues.waiting([queues.SCHEDULER])
    except queues.Unreachable:
        return False
    return True
