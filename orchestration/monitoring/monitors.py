"""Raise alerts about conditions of the machinery that last too long, and close them.

The housekeeper checks every `conf.DUTY_INTERVAL_S` seconds. A missing leader is detected by the worker of
alerts (`workers.leader_monitor`).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from .. import conf, registry
from ..alerting import alerts
from ..alerting.alerts import AlertReport
from ..applications import status_messages
from ..cluster import heartbeat
from ..cluster.debounce import Debounce
from ..cluster.duty import Duty, Sweep
from ..cluster.leader_election import Jump
from ..database import clock, sql
from ..messaging import queue_names
from ..models import Application, SupervisorPolicy, Worker
from ..models.alert import Severity
from ..models.application import Delivery
from ..models.low_water import AGENTS_FROM, all_agents, longest_waiting
from ..supervision.conditions import OF_LEADERS, PREFIX, jumped, keep
from ..transitions.holds import AGENT_UNTIL, ALL_UNTIL
from ..transitions.local_steps import NO_FUNCTION
from ..waiting import wait_reasons
from ..waiting.undeclared import undeclared_agents
from . import schedules
from .clocks import clocks_off
from .sessions import Blocking, blocked, blocking

NO_WORKER = f"{PREFIX}no_worker/"
PAUSED_AGENT = f"{PREFIX}paused/"
WAITING_AGENT = f"{PREFIX}waiting/"

# The oldest claimable step of each agent that is not claimed. Holds and outages have their own alerts: steps
# that they delay do not count, nor does the time for which they did. The last: whether an alert says so.
WAITING = f"""
SELECT p.agent, s.id, greatest(s.pending_since, h.until), EXISTS (SELECT FROM orchestration_alert a
    WHERE a.closed_at IS NULL AND a.fingerprint = '{WAITING_AGENT}' || p.agent)
FROM orchestration_policy p JOIN {AGENTS_FROM} USING (agent)
CROSS JOIN LATERAL {longest_waiting("s.id, s.pending_since")} s
CROSS JOIN LATERAL (SELECT greatest({AGENT_UNTIL}, {ALL_UNTIL}) AS until) h
WHERE greatest(s.pending_since, h.until) < {clock.VERIFIED} - %(limit)s * interval '1 second'
"""  # noqa: S608 - put together from constants

# Steps without an agent that no scheduler computes: the function is not deployed, or no scheduler runs.
UNCOMPUTED = f"""
SELECT t.workflow, s.name, bool_or(s.error_code <> ''), min(s.pending_since) FROM (
    (SELECT task_id, name, error_code, pending_since FROM orchestration_step
    WHERE agent = '' AND process_state = 'pending' AND error_code = %(unknown)s LIMIT %(most)s)
    UNION ALL
    (SELECT task_id, name, '', pending_since FROM orchestration_step
    WHERE agent = '' AND process_state = 'pending' AND num_nonnulls(run_after, held_by_id) = 0
        AND pending_since < {clock.VERIFIED} - %(limit)s * interval '1 second'
        AND NOT EXISTS (SELECT FROM orchestration_hold WHERE scope = 'all' AND until IS NULL)
    ORDER BY pending_since LIMIT %(most)s)) AS s
JOIN orchestration_task t ON t.id = s.task_id GROUP BY t.workflow, s.name
"""  # noqa: S608 - put together from constants

# Undos that were requested and have not started, or started and have not finished.
UNDOING = f"""
SELECT workflow, count(*), min(since) FROM (
    SELECT workflow, undo_at AS since FROM orchestration_task
    WHERE state = 'undoing' AND undo_at < {clock.VERIFIED} - %(limit)s * interval '1 second'
    UNION ALL
    SELECT t.workflow, r.requested_at
    FROM orchestration_undorequest r JOIN orchestration_task t ON t.id = r.task_id
    WHERE r.requested_at < {clock.VERIFIED} - %(limit)s * interval '1 second') AS long
GROUP BY workflow
"""  # noqa: S608 - put together from constants

# Agents that their services asked to pause: for long, or alerted about already.
PAUSED = f"""
SELECT g.agent, g.paused_until FROM orchestration_gate g
WHERE g.paused_until > {clock.VERIFIED} AND (
    g.paused_until > {clock.VERIFIED} + %(limit)s * interval '1 second'
    OR EXISTS (SELECT FROM orchestration_alert a
        WHERE a.closed_at IS NULL AND a.fingerprint = %(paused)s || g.agent))
"""  # noqa: S608 - put together from constants

NOT_REACHED = "Check the log of the schedulers."


def look(
    absent: Debounce,
    locking: Debounce | None = None,
    *,
    patience: float = conf.WORKER_DEAD_AFTER_S,
    jump: Jump | None = None,
    now: datetime | None = None,
) -> int:
    """Raise an alert for each condition of the machinery, and close those that are over.

    The leading housekeeper keeps `absent` and `locking` between calls: a queue must have been without a
    worker for `patience` seconds, and another session's locks must last.
    `jump` is the last jump of the database's clock: durations count only from then on. `now` is the
    leader's verified time: the clock may have jumped since. Returns the number of conditions.
    """
    limits = SupervisorPolicy.objects.get(id=1)
    alive = heartbeat.alive()
    quiet = jump.ago if jump else float("inf")  # seconds for which the clock has been reliable
    reports = [
        *blocked(_lasting(blocking(), locking or Debounce())),
        *_no_workers(absent.persisting(_unserved(alive), patience)),
        *_stepped_back(alive),
        *_paused(now),
        *_undeclared(),
        *([jumped(jump)] if jump and quiet < conf.CLOCK_JUMP_ALERT_S else clocks_off(alive)),
    ]
    for limit, check in (
        (limits.oldest_waiting, _uncomputed),
        (limits.oldest_waiting, _waiting),
        (limits.undo_stuck, _undoing),
        (limits.status_undelivered, _undelivered),
        (conf.SCHEDULE_LATE_S, schedules.late),
    ):
        if quiet > limit:
            reports += check(limit, now)
    keep(PREFIX, reports, but=OF_LEADERS)
    alerts.close_recovered()
    alerts.close_quiet()
    return len(reports)


def _monitor(sweep: Sweep) -> None:
    look(
        sweep.memory.of("absent", Debounce),
        sweep.memory.of("blocking", Debounce),
        jump=sweep.leadership.jump,
        now=sweep.now,
    )


MONITOR = Duty(name="monitor the engine", run=_monitor, every=conf.DUTY_INTERVAL_S)


def _lasting(sessions: Sequence[Blocking], locking: Debounce) -> list[Blocking]:
    """Return the sessions whose transaction has held locks for too long."""
    transactions = [session.transaction for session in sessions]
    lasting = locking.persisting(transactions, conf.BLOCKING_ALERT_AFTER_S)
    return [session for session in sessions if session.transaction in lasting]


def unserved(since: datetime | None = None) -> set[str]:
    """Return the queues that no living worker serves, or none that started after `since`."""
    return _unserved(heartbeat.alive(since))


def _unserved(alive: Iterable[Worker]) -> set[str]:
    return set(queue_names.declared()) - {worker.queue for worker in alive}


def _no_workers(names: Iterable[str]) -> list[AlertReport]:
    return [
        AlertReport(
            fingerprint=NO_WORKER + name,
            severity=Severity.CRITICAL,
            title=f"No worker serves the queue {name}",
            detail=f"The work of the queue waits. Start a worker: manage.py work {name}",
        )
        for name in sorted(names)
    ]


def _stepped_back(alive: Sequence[Worker]) -> list[AlertReport]:
    return [
        AlertReport(
            fingerprint=f"{PREFIX}instance/{worker.instance}",
            severity=Severity.WARNING,
            title=f"{worker.queue}: worker {worker.instance} takes no requests",
            detail=f"Since {_utc(worker.stepped_back_at)} its calls fail, while those of the agent's other "
            f"workers succeed. Check process {worker.pid} on {worker.host}: network, credentials, "
            "memory. It tries one request at intervals, and resumes when one succeeds.",
        )
        for worker in alive
        if worker.stepped_back_at is not None
    ]


def _paused(now: datetime | None) -> list[AlertReport]:
    parameters = {"limit": conf.PAUSE_ALERT_S, "now": now, "paused": PAUSED_AGENT}
    return [
        AlertReport(
            fingerprint=PAUSED_AGENT + agent,
            severity=Severity.WARNING,
            title=f"{agent}: the service asked for a long pause",
            detail=f"Its steps wait until {_utc(until)} (Retry-After). *Probe now* on the agents' page ends "
            "the pause; `retry_after_cap` of the agent's policy limits the next ones.",
        )
        for agent, until in sql.run(PAUSED, parameters)
    ]


def _undeclared() -> list[AlertReport]:
    return [
        AlertReport(
            fingerprint=f"{PREFIX}undeclared/{agent}",
            severity=Severity.CRITICAL,
            title=f"Steps wait for the agent {agent}, which no code declares",
            detail="Finish the deploy, or restore the agent.",
        )
        for agent in undeclared_agents(registry.agents)
    ]


def _uncomputed(limit: float, now: datetime | None) -> list[AlertReport]:
    parameters = {"limit": limit, "now": now, "unknown": NO_FUNCTION, "most": conf.BATCH_SIZE}
    return [
        AlertReport(
            fingerprint=f"{PREFIX}uncomputed/{workflow}/{step}",
            severity=Severity.CRITICAL,
            title=f"{workflow}: no scheduler computes the step {step}",
            detail=f"The oldest waits since {_utc(since)}. "
            + (
                "No running release declares its function: finish the deploy."
                if missing
                else NOT_REACHED
            ),
        )
        for workflow, step, missing, since in sql.run(UNCOMPUTED, parameters)
    ]


def _waiting(limit: float, now: datetime | None) -> list[AlertReport]:
    waiting = sql.run(WAITING, all_agents() | {"limit": limit, "now": now})
    # an open alert keeps what was noticed first
    noticed = {step: since for _, step, since, is_open in waiting if not is_open}
    details = {
        step.agent: f"The oldest could have gone {_utc(noticed[step.id])}. When this was noticed, it "
        f"{why.sentence(step.agent)}{f' {_utc(why.at)}' if why.at else ''}. Its window "
        "or rate is too small for what comes in, its service is slow, or nothing schedules."
        for step, why in wait_reasons.why_each(noticed)
    }
    return [
        AlertReport(
            fingerprint=f"{WAITING_AGENT}{agent}",
            severity=Severity.WARNING,
            title=f"{agent}: steps wait longer than {limit:g} s for their turn",
            detail=details.get(agent, ""),
        )
        for agent, *_ in waiting
    ]


def _undoing(limit: float, now: datetime | None) -> list[AlertReport]:
    return [
        AlertReport(
            fingerprint=f"{PREFIX}undo_stuck/{workflow}",
            severity=Severity.CRITICAL,
            title=f"{workflow}: undoing takes longer than {limit:g} s",
            detail=f"When this was noticed: {count} tasks, the oldest since {_utc(since)}.",
        )
        for workflow, count, since in sql.run(UNDOING, {"limit": limit, "now": now})
    ]


def _undelivered(limit: float, now: datetime | None) -> list[AlertReport]:
    late = status_messages.waiting(limit, now)
    applications = Application.objects.in_bulk([name for name, _ in late], field_name="name")
    return [
        AlertReport(
            fingerprint=f"{PREFIX}status_undelivered/{name}",
            severity=Severity.WARNING,
            title=f"{name}: status messages wait longer than {limit:g} s",
            detail=f"The oldest was written {_utc(since)}. {_why_undelivered(applications.get(name))}",
        )
        for name, since in late
    ]


def _why_undelivered(application: Application | None) -> str:
    if application is None or application.delivery == Delivery.CONSUMER:
        return "Its worker is stopped, slow or failing."
    if not application.active:
        return "The application is inactive."
    if application.delivery == Delivery.PULL:
        return "The application does not fetch and acknowledge them."
    return f"Its receiver fails: {application.push_error or 'it is slow'}"


def _utc(moment: Any) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
