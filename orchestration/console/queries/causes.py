"""Current problems by cause: how many tasks each affects, since when, and what happens next.

A task is affected while a step of it is in error, is retried, waits for a blocked agent, or is held.
A step that waits for a blocked agent counts there, not with the failure it had before. One whose
first attempt is for later is not affected yet.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from ...database import sql
from ...database.capped_counts import CAP
from ...decisions.wait_reasons import Reason
from ...models import Incident
from ...states import Direction, Outcome
from ...waiting.agent_view import AgentView

LOOKED_AT = 8  # incidents: those with most tasks in error, and as many of the latest

# Each kind goes along the index of exactly those steps, no further than the limit: step_waiting (the oldest
# first), step_in_flight, step_error_age, step_retrying_by_incident, step_held. How many tasks an incident
# has in error is kept with it: if so, only its oldest step is read, for the times.
AFFECTED = """
WITH stopped AS (
    SELECT * FROM unnest(%(agents)s::text[], %(groups)s::text[]) AS stopped (agent, name)
), looked_at AS MATERIALIZED (
    (SELECT id, open_tasks FROM orchestration_incident WHERE open_tasks > 0 AND state <> 'resolved'
        ORDER BY open_tasks DESC, id DESC LIMIT %(incidents)s)
    UNION (SELECT id, open_tasks FROM orchestration_incident WHERE state <> 'resolved'
        ORDER BY last_seen DESC, id DESC LIMIT %(incidents)s)
), affected AS (
    SELECT 'agent' AS kind, stopped.name AS name, s.*
    FROM stopped CROSS JOIN generate_series(0, 2) AS kinds (waits_for) CROSS JOIN LATERAL (
        SELECT task_id, incident_id, least(keyed_at, pending_since) AS since, false AS error, run_after,
            NULL::timestamptz AS resolve_by
        FROM orchestration_step WHERE agent = stopped.agent AND process_state = 'pending'
            AND num_nonnulls(run_after, held_by_id) = waits_for
            AND (run_after IS NULL OR attempt > 0)
        ORDER BY pending_since LIMIT %(limit)s) AS s
    UNION ALL
    SELECT 'agent', stopped.name, s.task_id, s.incident_id, least(s.keyed_at, s.dispatched_at), false, NULL,
        NULL
    FROM stopped JOIN orchestration_step s ON s.agent = stopped.agent
        AND s.process_state = 'processing' AND s.locked_by IS NOT NULL
    UNION ALL
    SELECT 'incident', looked_at.id::text, s.* FROM looked_at CROSS JOIN LATERAL (
        SELECT CASE WHEN open_tasks = 0 THEN task_id END, incident_id, ended_at, true, NULL::timestamptz,
            resolve_by
        FROM orchestration_step
        WHERE incident_id = looked_at.id AND process_state = 'error'
        ORDER BY ended_at LIMIT CASE WHEN open_tasks > 0 THEN 1 ELSE %(limit)s END) AS s
    UNION ALL
    SELECT 'incident', looked_at.id::text, s.* FROM looked_at CROSS JOIN LATERAL (
        SELECT task_id, incident_id, least(keyed_at, failed_at), false, run_after,
            NULL::timestamptz
        FROM orchestration_step
        WHERE incident_id = looked_at.id AND process_state IN ('pending', 'processing')
            AND held_by_id IS NULL AND agent <> ALL (%(agents)s)
        ORDER BY id LIMIT %(limit)s) AS s
    UNION ALL
    (SELECT 'hold', '', task_id, incident_id, pending_since, false, NULL, NULL
        FROM orchestration_step
        WHERE held_by_id IS NOT NULL AND process_state = 'pending' AND agent <> ALL (%(agents)s)
        LIMIT %(limit)s)
), tasks AS (
    SELECT kind, name, task_id, min(since) AS since, bool_or(error) AS error, min(run_after) AS next,
        min(resolve_by) AS undo, max(incident_id) AS incident_id
    FROM affected GROUP BY kind, name, task_id
)
SELECT tasks.kind, tasks.name, t.currency, count(t.id), count(t.id) FILTER (WHERE tasks.error),
    min(tasks.since), min(tasks.next), min(tasks.undo), sum(t.value),
    mode() WITHIN GROUP (ORDER BY tasks.incident_id)
FROM tasks LEFT JOIN orchestration_task t ON t.id = tasks.task_id
GROUP BY tasks.kind, tasks.name, t.currency
"""

PROBLEMS = {
    Outcome.TRANSIENT: "fails",
    Outcome.UNKNOWN: "loses replies",
    Outcome.EXPIRED: "does not reply",
    Outcome.REJECTED: "rejects requests",
}


class Kind(StrEnum):
    """The kind of a cause."""

    AGENT = "agent"  # an agent lets nothing through; named "" if everything is held
    INCIDENT = "incident"  # a step fails
    HOLD = "hold"  # tasks, or a step in every task, are held


@dataclass(kw_only=True)
class Cause:
    """One cause, and the tasks it affects now, counted no further than one past `CAP`.

    `at_risk` is the value of the tasks by currency, in minor units. `next` is the first attempt or
    probe to come, if a time is set; `undo` is when the task longest in error is undone, if it is.
    `incident` is the most frequent failure of the tasks. `cut`: not all tasks were looked at, so that
    more is at risk.
    """

    kind: Kind
    name: str
    tasks: int = 0
    errors: int = 0
    since: datetime | None = None
    next: datetime | None = None
    undo: datetime | None = None
    cut: bool = False
    at_risk: dict[str, int] = field(default_factory=dict)
    incident: Incident | None = None
    agent: AgentView | None = None

    @property
    def needs_person(self) -> bool:
        """Return whether it lasts until a person acts."""
        if self.kind != Kind.AGENT:
            return bool(self.errors) or self.kind == Kind.HOLD
        return bool(self.agent and self.agent.facts.hold)

    @property
    def title(self) -> str:
        """Return the problem, as the beginning of a sentence."""
        if self.kind == Kind.HOLD:
            return "Tasks are held"
        if self.kind == Kind.AGENT:
            return self._of_agent()
        incident = self.incident
        if incident is None:
            return "A step fails"
        step = (
            f"the undo of {incident.step}"
            if incident.direction == Direction.UNDO
            else incident.step
        )
        where = f"at {incident.agent}" if incident.agent else f"in {incident.workflow}"
        return f"{step} fails {where} ({incident.code or incident.outcome})"

    def _of_agent(self) -> str:
        blocked = self.agent.blocked if self.agent else None
        if blocked is None:
            return self.name
        name = self.name or "Everything"
        match blocked.reason:
            case Reason.AGENT_HOLD | Reason.NO_WORKER:
                return f"{name} is {blocked.text}"
            case Reason.PAUSED:
                return f"{name} asked for a pause"
        if self.incident is None:
            return f"The circuit breaker of {name} is {blocked.state}"
        problem = PROBLEMS.get(Outcome(self.incident.outcome), "fails")
        return f"{name} {problem} ({self.incident.code or self.incident.outcome})"


def causes(known: Mapping[str, AgentView]) -> Sequence[Cause]:
    """Return the causes of current problems, most tasks first: two queries for any number of tasks.

    A blocked agent is a cause even while no task waits for it.
    """
    stopped = {name: agent for name, agent in known.items() if not agent.free}
    groups = {name: "" if agent.held_with_all else name for name, agent in stopped.items()}
    by_key = {(Kind.AGENT, group): Cause(kind=Kind.AGENT, name=group) for group in groups.values()}
    most: dict[tuple[Kind, str], Counter[int]] = {}
    parameters = {
        "agents": list(groups), "groups": list(groups.values()), "limit": CAP + 1,
        "incidents": LOOKED_AT,
    }  # fmt: skip
    for kind, name, currency, *numbers, value, incident in sql.run(AFFECTED, parameters):
        key = Kind(kind), name
        cause = by_key.setdefault(key, Cause(kind=key[0], name=name))
        _add(cause, *numbers)
        if currency and value:
            cause.at_risk[currency] = cause.at_risk.get(currency, 0) + int(value)
        if incident is not None:
            most.setdefault(key, Counter())[incident] += numbers[0]
    for name, group in groups.items():
        cause, agent = by_key[Kind.AGENT, group], stopped[name]
        cause.agent = agent
        cause.next = agent.blocked.at if agent.blocked else None
    _add_incidents(by_key, most)
    return sorted(by_key.values(), key=_rank)


def _add(
    cause: Cause, tasks: int, errors: int, since: datetime | None, upcoming: datetime | None,
    undo: datetime | None,
) -> None:  # fmt: skip
    cause.tasks += tasks
    cause.cut = cause.tasks > CAP
    cause.errors += errors
    cause.since = min(filter(None, (cause.since, since)), default=None)
    cause.next = min(filter(None, (cause.next, upcoming)), default=None)
    cause.undo = min(filter(None, (cause.undo, undo)), default=None)


def _add_incidents(
    by_key: Mapping[tuple[Kind, str], Cause], most: Mapping[tuple[Kind, str], Counter[int]]
) -> None:
    chosen = {key: counts.most_common(1)[0][0] for key, counts in most.items()}
    known = Incident.objects.defer("message").in_bulk(set(chosen.values()))
    for key, number in chosen.items():
        cause, incident = by_key[key], known.get(number)
        cause.incident = incident
        if cause.kind == Kind.INCIDENT and incident and incident.open_tasks > 0:
            cause.tasks += incident.open_tasks
            cause.errors += incident.open_tasks
            for currency, value in incident.at_risk.items():
                cause.at_risk[currency] = cause.at_risk.get(currency, 0) + value


def _rank(cause: Cause) -> tuple[int, bool, float, str]:
    since = cause.since.timestamp() if cause.since else float("inf")
    return -cause.tasks, not cause.needs_person, since, cause.name


def blocked_tasks(open_causes: Iterable[Cause]) -> int:
    """Return how many tasks wait at agents or are held, no further than one past `CAP`."""
    return min(sum(cause.tasks for cause in open_causes if cause.kind != Kind.INCIDENT), CAP + 1)
