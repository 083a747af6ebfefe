"""Hold and release: held steps wait, and the deadlines of their tasks are extended."""

import time
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from .. import conf
from ..database import sql
from ..decisions.fairness import Arrival
from ..decisions.progress import Refusal
from ..models import Event, Hold, Task
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..models.hold import HOLDS_ALL, HOLDS_STEP, HOLDS_TASK, HoldCause, Scope, holds_agent
from ..models.step import claimable
from ..states import FINAL_TASK_STATES
from .moves import UNPARKED
from .turns import StandingStep, next_turns

# Until when a hold of one scope kept the steps of an agent ('' for the other scopes): infinity while
# one is in force, NULL if there never was one. One look at the end of hold_wide.
UNTIL = """(SELECT coalesce(until, 'infinity') FROM orchestration_hold
    WHERE scope <> 'task' AND scope = '{scope}' AND agent = {agent} ORDER BY until DESC LIMIT 1)"""
ALL_UNTIL = UNTIL.format(scope="all", agent="''")
STEPS_UNTIL = UNTIL.format(scope="step", agent="''")
AGENT_UNTIL = UNTIL.format(scope="agent", agent="p.agent")

# Held steps among the next of an agent's queue. Parking a step keeps its hold from ending until that
# is committed, so that clearing the hold finds the step.
PARK = f"""
WITH next AS MATERIALIZED (
    SELECT s.id, s.process_state, s.attempt, s.generation, s.task_id, s.name, t.workflow
    FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
    WHERE s.agent = %(agent)s AND s.isolated = %(isolated)s AND {claimable("s")}
    ORDER BY s.priority DESC, s.turn, s.id
    LIMIT %(limit)s FOR NO KEY UPDATE OF s SKIP LOCKED
), held AS MATERIALIZED (
    SELECT next.*, coalesce(of_task.id, of_step.id) AS hold FROM next
    LEFT JOIN LATERAL (
        SELECT h.id FROM orchestration_hold h WHERE h.task_id = next.task_id AND h.until IS NULL
        LIMIT 1 FOR SHARE SKIP LOCKED) AS of_task ON true
    LEFT JOIN LATERAL (
        SELECT h.id FROM orchestration_hold h WHERE h.scope = 'step' AND h.agent = ''
            AND h.workflow = next.workflow AND h.step = next.name AND h.until IS NULL
        LIMIT 1 FOR SHARE SKIP LOCKED) AS of_step ON true
)
UPDATE orchestration_step s SET held_by_id = held.hold
FROM held WHERE s.id = held.id AND held.hold IS NOT NULL
    AND (s.process_state, s.attempt, s.generation) = (held.process_state, held.attempt, held.generation)
RETURNING s.id
"""  # noqa: S608 - constants of our own

# Steps that another session has locked are left to the claim.
PARK_OF_TASKS = f"""
WITH found AS MATERIALIZED (
    SELECT s.id, s.process_state, s.attempt, s.generation, h.hold
    FROM unnest(%(tasks)s::uuid[], %(holds)s::bigint[]) AS h (task, hold)
    JOIN orchestration_step s ON s.task_id = h.task
    WHERE {claimable("s")}
    ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE orchestration_step s SET held_by_id = found.hold FROM found WHERE s.id = found.id
    AND (s.process_state, s.attempt, s.generation) = (found.process_state, found.attempt, found.generation)
"""  # noqa: S608 - constants of our own

# Of holds that have ended, the steps that are parked for them.
ENDED = """
SELECT s.* FROM (SELECT id FROM orchestration_hold WHERE until IS NOT NULL AND NOT cleared
    ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED) AS ended
CROSS JOIN LATERAL (
    SELECT id, process_state, attempt, generation, agent, priority, fairness_key FROM orchestration_step
    WHERE held_by_id = ended.id
    LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED) AS s
LIMIT %(limit)s
"""

# A hold is cleared once no step is parked for it; none can be from its end on.
CLEAR = """
UPDATE orchestration_hold h SET cleared = true WHERE h.id IN (
    SELECT id FROM orchestration_hold WHERE until IS NOT NULL AND NOT cleared
    ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED)
AND NOT EXISTS (SELECT FROM orchestration_step s WHERE s.held_by_id = h.id)
RETURNING h.id
"""

# Those of the steps that are held now, by a person or as no worker serves their agent: each scope by
# hold_once or hold_by_task, for any number of holds.
HELD = f"""
SELECT s.id FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE s.id = ANY(%(ids)s)
    AND ({HOLDS_ALL} OR {holds_agent("s.agent")} OR {HOLDS_STEP} OR {HOLDS_TASK})
"""  # noqa: S608 - constants of our own

PARKED = 5 * conf.BATCH_SIZE  # steps of a queue that are looked at to find held ones

# The agents whose queue a worker serves, and yet they are held for want of one; and the opposite.
SERVICE_CHANGED = f"""
SELECT p.agent, w.served FROM orchestration_policy p
CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM orchestration_worker w WHERE w.queue = p.agent
    AND w.seen_at > (SELECT clock_timestamp()) - interval '{conf.WORKER_DEAD_AFTER_S} seconds') AS served) w
WHERE w.served = EXISTS (SELECT FROM orchestration_hold h
    WHERE h.scope = 'agent' AND h.agent = p.agent AND h.cause = 'no_worker' AND h.until IS NULL)
UNION ALL
SELECT h.agent, true FROM orchestration_hold h  -- of an agent that is gone: nothing to hold
WHERE h.scope = 'agent' AND h.cause = 'no_worker' AND h.until IS NULL
    AND NOT EXISTS (SELECT FROM orchestration_policy p WHERE p.agent = h.agent)
"""  # noqa: S608 - a constant of our own

# Each task that still has something to hold, and is not held by hand yet.
HOLD_TASKS = """
INSERT INTO orchestration_hold (scope, agent, workflow, step, task_id, cause, reason, actor, since,
    released_by, released_why)
SELECT 'task', '', '', '', t.id, 'hand', %(reason)s, %(actor)s, clock_timestamp(), '', ''
FROM orchestration_task t
WHERE t.id = ANY(%(tasks)s::uuid[]) AND t.state NOT IN ('processed', 'undone') ORDER BY t.id
ON CONFLICT (scope, agent, workflow, step, task_id, cause) WHERE until IS NULL DO NOTHING
RETURNING task_id, id
"""

RELEASE_TASKS = """
UPDATE orchestration_hold SET until = clock_timestamp(), released_by = %(actor)s,
    released_why = %(reason)s
WHERE task_id = ANY(%(tasks)s::uuid[]) AND scope = 'task' AND cause = 'hand' AND until IS NULL
RETURNING task_id
"""


def park(agent: str, *, isolated: bool) -> int:
    """Take the held ones among the next steps of an agent's queue out of sight; return how many.

    Releasing a hold waits for this transaction from here on: it must not wait for a lock after this.
    """
    return len(sql.run(PARK, {"agent": agent, "isolated": isolated, "limit": PARKED}))


@transaction.atomic
def hold(
    *,
    actor: str,
    reason: str,
    agent: str = "",
    workflow: str = "",
    step: str = "",
    task: UUID | None = None,
    cause: HoldCause = HoldCause.HAND,
) -> Hold | Refusal:
    """Hold a task, a step of a workflow, an agent, or (with none of these) everything.

    Takes effect at the next claim; what an agent has already is not touched. Holding what is held
    by the same cause changes nothing.
    """
    scope = (
        Scope.TASK
        if task is not None
        else Scope.AGENT
        if agent
        else Scope.STEP
        if step
        else Scope.ALL
    )
    if task is not None and not Task.objects.filter(id=task).exists():
        return Refusal.NO_SUCH_TASK
    target: dict[str, Any] = {"agent": agent, "workflow": workflow, "step": step, "task_id": task}
    try:
        with transaction.atomic():
            made = Hold.objects.create(
                scope=scope, cause=cause, actor=actor, reason=reason, **target
            )
    except IntegrityError as error:
        if not sql.is_duplicate(error):
            raise
        return Refusal.HELD_ALREADY
    if task is not None:
        _park_of({task: made.id})
    if cause == HoldCause.HAND:
        _note_hold(made, EventKind.HELD, actor, reason)
    return made


@transaction.atomic
def release(hold_id: int, *, actor: str, reason: str) -> Refusal | None:
    """End a hold that was made by hand; return why not, or None when it was done.

    Its steps may be claimed from the supervisor's next sweep on.
    """
    done = Hold.objects.filter(id=hold_id, until=None, cause=HoldCause.HAND).update(
        until=DatabaseNow(), released_by=actor, released_why=reason
    )
    if not done:
        return Refusal.NOT_HELD
    _note_hold(Hold.objects.get(id=hold_id), EventKind.RELEASED, actor, reason)
    return None


def _note_hold(held: Hold, kind: EventKind, actor: str, reason: str) -> None:
    """Write to the history what was done to a hold; for one on more than a task, with its target."""
    detail = {} if held.task_id else {"target": held.target}
    Event.objects.create(task_id=held.task_id, kind=kind, actor=actor, reason=reason, detail=detail)


@transaction.atomic
def hold_tasks(
    tasks: Collection[UUID], *, actor: str, reason: str, operation: int
) -> dict[UUID, Refusal | None]:
    """Hold tasks; return for each why not, or None when it was done."""
    parameters = {"actor": actor, "reason": reason, "tasks": [str(task) for task in tasks]}
    held = dict(sql.run(HOLD_TASKS, parameters))
    _park_of(held)
    _note(held, EventKind.HELD, actor, reason, operation)
    missed = Task.objects.filter(id__in=set(tasks) - held.keys()).values_list("id", "state")
    answers: dict[UUID, Refusal | None] = dict.fromkeys(held)
    return answers | {
        task: Refusal.ENDED if state in FINAL_TASK_STATES else Refusal.HELD_ALREADY
        for task, state in missed
    }


@transaction.atomic
def release_tasks(
    tasks: Collection[UUID], *, actor: str, reason: str, operation: int
) -> dict[UUID, Refusal | None]:
    """End the holds by hand of tasks; return for each why not, or None when it was done."""
    parameters = {"actor": actor, "reason": reason, "tasks": [str(task) for task in tasks]}
    released = {task for (task,) in sql.run(RELEASE_TASKS, parameters)}
    _note(released, EventKind.RELEASED, actor, reason, operation)
    return {task: None if task in released else Refusal.NOT_HELD for task in tasks}


def _note(
    tasks: Collection[UUID], kind: EventKind, actor: str, reason: str, operation: int
) -> None:
    Event.objects.bulk_create(
        Event(task_id=task, kind=kind, actor=actor, reason=reason, operation_id=operation)
        for task in sorted(tasks)
    )


def held(steps: Collection[int]) -> set[int]:
    """Return those of `steps` that are held now: nothing irreversible follows from them by itself."""
    return {step for (step,) in sql.run(HELD, {"ids": list(steps)})} if steps else set()


def _park_of(holds: Mapping[UUID, int]) -> None:
    """Park the pending steps of newly held tasks, so that the claim does not read them."""
    tasks = [str(task) for task in holds]
    sql.run(PARK_OF_TASKS, {"tasks": tasks, "holds": list(holds.values())})


def unpark() -> int:
    """Return the steps of ended holds to the claim, except locked ones; return how many.

    After `conf.DUTY_BUDGET_S` seconds a later sweep continues: a hold may have parked a million.
    """
    total, until = 0, time.monotonic() + conf.DUTY_BUDGET_S
    while any(done := _unpark_a_batch()):
        total += done[0]
        if time.monotonic() > until:
            break
    return total


@transaction.atomic
def _unpark_a_batch() -> tuple[int, int]:
    """Return a batch of steps to the claim; return their number, and the number of holds cleared."""
    batch = {"limit": conf.BATCH_SIZE}
    steps = [StandingStep._make(row) for row in sql.run(ENDED, batch)]
    UNPARKED.write(steps, turn=next_turns([Arrival(step.line) for step in steps]))
    return len(steps), len(sql.run(CLEAR, batch))


def hold_unserved() -> None:
    """Hold the agents whose queue no worker serves, and release those that are served again."""
    changed = dict(sql.run(SERVICE_CHANGED, {}))
    for agent in sorted(name for name, served in changed.items() if not served):
        hold(
            agent=agent, cause=HoldCause.NO_WORKER, actor="housekeeper",
            reason="no worker serves the queue",
        )  # fmt: skip
    if back := [name for name, served in changed.items() if served]:
        Hold.objects.filter(cause=HoldCause.NO_WORKER, until=None, agent__in=back).update(
            until=DatabaseNow(),
            released_by="housekeeper",
            released_why="a worker serves the queue again",
        )
