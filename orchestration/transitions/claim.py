"""A scheduler takes steps for an agent: pending → processing (P6, P16, P21)."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import transaction

from .. import conf, sql
from ..gate import free_places
from ..messages import Request
from ..models import Gate, Step
from ..models.task import step_key
from ..states import StepState

# The policies of agents that something waits for, and how many requests each has in flight: two
# partial indexes, no table scan.
DEMAND = """
SELECT p.agent, p.time_allowed, p.call_timeout, p.tries, p."window",
       (SELECT count(*) FROM orchestration_step s WHERE s.agent = p.agent
           AND s.process_state = 'processing' AND s.locked_by IS NOT NULL) AS in_flight
FROM orchestration_policy p
WHERE p.agent = ANY(%(agents)s)
  AND EXISTS (SELECT 1 FROM orchestration_step s WHERE s.agent = p.agent
           AND s.process_state = 'pending' AND s.run_after IS NULL)
ORDER BY p.agent
"""

PROCESSING = """
UPDATE orchestration_step
SET process_state = 'processing', locked_by = %(by)s, attempt = attempt + 1,
    dispatched_at = clock_timestamp(),
    complete_by = clock_timestamp() + %(time_allowed)s * interval '1 second',
    outcome = '', error_code = '', error_message = ''
WHERE id = ANY(%(ids)s)
RETURNING id, extract(epoch FROM complete_by)::float8
"""

# Two claims for different agents may start the same tasks: both lock them in one order.
STARTED = """
UPDATE orchestration_task SET state = 'processing' WHERE id IN (
    SELECT id FROM orchestration_task WHERE id = ANY(%(ids)s::uuid[]) AND state = 'pending'
    ORDER BY id FOR NO KEY UPDATE
)
"""


class Demand(NamedTuple):
    """One agent that something waits for: its limits (seconds, calls, requests) and its load."""

    agent: str
    time_allowed: float
    call_timeout: float
    tries: int
    window: int
    in_flight: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """A pending step, locked."""

    id: int
    task: Any
    name: str
    direction: str
    action: str
    generation: int
    attempt: int
    request: dict[str, Any]
    reference: str


@transaction.atomic(savepoint=False)
def claim(agents: Collection[str], by: str) -> dict[str, list[Request]]:
    """Claim what each of `agents` has room for, a batch at most; return the requests, by agent.

    `by` is the claiming instance (LockedBy). The requests are to be sent after the commit; any
    that is lost on the way expires at its complete-by time and is tried again.
    """
    if not agents:
        return {}
    claimed: dict[str, list[Request]] = {}
    started: set[Any] = set()
    gates = Gate.objects.select_for_update(no_key=True).order_by("agent")
    open_gates = [gate.agent for gate in gates.filter(agent__in=sorted(agents)) if gate.open]
    # Counted after the lock was won: in READ COMMITTED a count in the locking statement itself
    # could be older than what the former holder of the lock committed.
    for demand in map(Demand._make, sql.run(DEMAND, {"agents": open_gates}) if open_gates else []):
        free = free_places(demand.window, demand.in_flight)
        steps = _lock_pending(demand.agent, min(free, conf.BATCH))
        if steps:
            claimed[demand.agent] = _process(steps, demand, by)
            started.update(step.task for step in steps if step.attempt == 0)
    if started:
        sql.run(STARTED, {"ids": [str(task) for task in started]})
    return claimed


def _lock_pending(agent: str, limit: int) -> list[Pending]:
    """Lock up to `limit` steps that are due, by priority, then age; skip those being claimed."""
    if not limit:
        return []
    rows = (
        # no_key: inserting an attempt takes a key lock on its step, which must not wait for us.
        # Select first, update by key after: an UPDATE over a locking sub-select with a limit may
        # run the sub-select again, and take more than the limit.
        Step.objects.select_for_update(skip_locked=True, of=("self",), no_key=True)
        .filter(agent=agent, process_state=StepState.PENDING, run_after=None)
        .order_by("-priority", "id")
        .values_list(
            "id", "task_id", "name", "direction", "action", "generation", "attempt", "request",
            "task__reference",
        )[:limit]
    )  # fmt: skip
    names = tuple(Pending.__dataclass_fields__)
    return [Pending(**dict(zip(names, row, strict=True))) for row in rows]


def _process(steps: list[Pending], demand: Demand, by: str) -> list[Request]:
    deadlines = dict(
        sql.run(
            PROCESSING,
            {"by": by, "time_allowed": demand.time_allowed, "ids": [step.id for step in steps]},
        )
    )
    return [
        Request(
            step=step.id,
            task=str(step.task),
            name=step.name,
            attempt=step.attempt + 1,
            action=step.action,
            key=step_key(step.task, step.name, step.direction, step.generation),
            reference=step.reference,
            complete_by=deadlines[step.id],
            call_timeout=demand.call_timeout,
            tries=demand.tries,
            payload=step.request,
        )
        for step in steps
    ]
