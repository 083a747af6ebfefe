"""The system page: queues, processes, the leader, backlogs, and the findings of the audit.

The state store alone is enough for it: what Redis knows is a part of its own, that may be missing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ... import conf, registry
from ...cluster import heartbeat, leader_election
from ...cluster.leaders import Leader, leaders
from ...database import clock, sql
from ...database.capped_counts import CAP
from ...messaging import queue_depths, queues, redis_breaker
from ...models import AuditRun, SupervisorPolicy, Worker
from ...models.inbox import INBOX_LETTERS, STATUSES, SUBMISSIONS
from ...models.notification import NOTIFICATIONS
from ...models.request import REQUESTS, waits_for_person

MOST_WORKERS = 500
MOST_VIOLATIONS = 50

READY = f"NOT {waits_for_person('m')}"
# Each is a partial index; counted up to the cap.
LYING = f"""
SELECT {SUBMISSIONS.count(SUBMISSIONS.open)},
    coalesce({SUBMISSIONS.first("created_at", SUBMISSIONS.where(SUBMISSIONS.fresh), "id")},
        {SUBMISSIONS.first("created_at", SUBMISSIONS.where(SUBMISSIONS.open), SUBMISSIONS.sql_order)}),
    {SUBMISSIONS.count(SUBMISSIONS.needs_person)},
    {STATUSES.count(STATUSES.open)},
    {STATUSES.first("created_at", STATUSES.where(STATUSES.open), "id")},
    {STATUSES.count(STATUSES.needs_person)},
    {NOTIFICATIONS.count(NOTIFICATIONS.open)},
    (SELECT min(created_at) FROM orchestration_notification m
        WHERE {NOTIFICATIONS.where(NOTIFICATIONS.open)}),
    {REQUESTS.count(REQUESTS.open, READY)},
    (SELECT min(created_at) FROM (SELECT created_at FROM orchestration_taskrequest m
        WHERE {REQUESTS.where(REQUESTS.open)} AND {READY} LIMIT %(limit)s) AS c),
    {REQUESTS.count(REQUESTS.needs_person)},
    {INBOX_LETTERS.count(INBOX_LETTERS.needs_person)},
    (SELECT min(oldest.since) FROM orchestration_policy p CROSS JOIN LATERAL (
        SELECT min(s.pending_since) AS since FROM orchestration_step s WHERE s.agent = p.agent
            AND s.process_state = 'pending' AND num_nonnulls(s.run_after, s.held_by_id) = 0) AS oldest),
    (SELECT min(complete_by) FROM orchestration_step
        WHERE process_state = 'processing' AND complete_by < (SELECT clock_timestamp()))
"""  # noqa: S608 - put together from constants


@dataclass(frozen=True, kw_only=True)
class Backlogs:
    """The size of each backlog, and the time of its oldest entry."""

    submissions: int
    oldest_submission: datetime | None
    submissions_refused: int
    statuses: int
    oldest_status: datetime | None
    statuses_refused: int
    notifications: int
    oldest_notification: datetime | None
    requests: int
    oldest_request: datetime | None
    requests_refused: int
    letters: int  # of inboxes, that were given up
    oldest_step: datetime | None
    expired: datetime | None


@dataclass(frozen=True, kw_only=True)
class QueueRow:
    """One queue: who serves it, and what Redis knows of it, if it answers."""

    name: str
    workers: int
    silent: int
    depth: queue_depths.Depth | None

    @property
    def unserved(self) -> bool:
        """Return whether no worker serves it."""
        return not self.workers


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process and whether it gave a sign of life lately; `replaced`: another was started since."""

    worker: Worker
    alive: bool
    leads: bool
    replaced: bool


@dataclass(frozen=True, kw_only=True)
class System:
    """All that the page shows; `redis` says whether Redis answers."""

    now: datetime
    redis: bool
    queues: Sequence[QueueRow]
    processes: Sequence[Process]
    leaders: Sequence[Leader]
    interval: float
    backlogs: Backlogs
    audit: AuditRun | None
    # the last audit that found something, or looked at everything: one of what has changed, and was fine,
    # says nothing of what was found before
    standing: AuditRun | None
    audit_every: float
    cut: bool
    patience: float = conf.WORKER_DEAD_AFTER_S

    @property
    def violations(self) -> Sequence[Mapping[str, object]]:
        """Return the first of what the last audit found."""
        violations: Sequence[Mapping[str, object]] = (
            self.standing.violations if self.standing else []
        )
        return violations[:MOST_VIOLATIONS]

    @property
    def clock_astray(self) -> Sequence[Process]:
        """Return the processes whose clock is far from the database's."""
        return [process for process in self.processes if abs(process.worker.clock_offset) > 5]


def system() -> System:
    """Return the page in six queries, and one exchange with Redis."""
    now = clock.database_now()
    led = leaders(now)
    holders = {leader.lease.holder for leader in led if leader.lease and leader.held}
    oldest = now - timedelta(seconds=conf.WORKER_DEAD_AFTER_S)
    workers = list(Worker.objects.order_by("queue", "instance")[: MOST_WORKERS + 1])
    started: dict[tuple[str, str], datetime] = {}  # the last of a kind on a host
    for worker in workers:
        kind = worker.queue, worker.host
        started[kind] = max(worker.started_at, started.get(kind, worker.started_at))
    processes = [
        Process(
            worker=worker,
            alive=worker.seen_at > oldest,
            leads=worker.instance in holders,
            replaced=max(worker.seen_at, worker.started_at) < started[worker.queue, worker.host],
        )
        for worker in workers[:MOST_WORKERS]
    ]
    names = _queues(processes)
    depths = _depths(names)
    policy = SupervisorPolicy.objects.first() or SupervisorPolicy()
    ended = AuditRun.objects.filter(ended_at__isnull=False).order_by("-started_at")
    return System(
        now=now,
        redis=depths is not None,
        queues=_rows(names, processes, depths or {}),
        processes=processes,
        leaders=led,
        interval=policy.interval,
        backlogs=Backlogs(
            **dict(
                zip(
                    Backlogs.__dataclass_fields__,
                    sql.run(LYING, {"limit": CAP + 1})[0],
                    strict=True,
                )
            )
        ),
        audit=ended.first(),
        standing=ended.exclude(since__isnull=False, violations=[]).first(),
        audit_every=policy.audit_every,
        cut=len(workers) > MOST_WORKERS,
    )


def _queues(processes: Sequence[Process]) -> list[str]:
    """Return the queues that are needed, and any others that a worker serves."""
    statuses = [queues.STATUS_PREFIX + name for name in sorted(registry.receivers)]
    needed = [*queues.HANDLERS, *sorted(registry.agents), *statuses]
    served = {process.worker.queue for process in processes} - {
        *leader_election.NAMES,
        heartbeat.WEB,
        *needed,
    }
    return [*needed, *sorted(served)]


def _depths(names: Sequence[str]) -> Mapping[str, queue_depths.Depth] | None:
    try:
        return queue_depths.depths(names)
    except redis_breaker.Unreachable:
        return None


def _rows(
    names: Sequence[str], processes: Sequence[Process], depths: Mapping[str, queue_depths.Depth]
) -> list[QueueRow]:
    alive = Counter(process.worker.queue for process in processes if process.alive)
    silent = Counter(process.worker.queue for process in processes if not process.alive)
    return [
        QueueRow(name=name, workers=alive[name], silent=silent[name], depth=depths.get(name))
        for name in names
    ]
