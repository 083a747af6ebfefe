"""Holding and releasing: steps wait, and their tasks' own deadlines stand still."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from .. import conf, sql
from ..models import Event, Hold, Task
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..models.hold import Cause, Scope
from ..progression import Refusal
from ..states import FINAL_TASK_STATES

# Seconds for which holds kept step `s` from being claimed since it became pending. Holds that
# overlap count once. A step's parallel siblings may add their own: then the task gets more time.
STOOD = """coalesce((
    SELECT extract(epoch FROM sum(upper(r) - lower(r)))::float8 FROM unnest((
        SELECT range_agg(tstzrange(greatest(h.since, s.pending_since),
            greatest(s.pending_since, h.since, coalesce(h.until, clock_timestamp()))))
        FROM orchestration_hold h
        WHERE (h.until IS NULL OR h.until > s.pending_since) AND (
            h.agent = s.agent OR h.scope = 'all' OR h.task_id = s.task_id
            OR h.scope = 'step' AND h.step = s.name AND h.workflow = (
                SELECT workflow FROM orchestration_task t WHERE t.id = s.task_id)
        ))) AS r WHERE NOT isempty(r)), 0)"""

PARK = """
UPDATE orchestration_step s SET held_by_id = h.hold
FROM unnest(%(ids)s::bigint[], %(holds)s::bigint[]) AS h (id, hold)
WHERE s.id = h.id AND s.process_state = 'pending'
"""

IN_FORCE = """
SELECT id, scope, task_id, workflow, step FROM orchestration_hold
WHERE until IS NULL AND scope <> 'agent'
"""

# Only steps that became pending before the end of a hold can have stood still in it; the oldest of
# them is not older than this.
LATELY = """EXISTS (SELECT 1 FROM orchestration_hold
    WHERE until IS NULL OR until > clock_timestamp() - interval '7 days')"""

LET_GO = """
UPDATE orchestration_step SET held_by_id = NULL WHERE id IN (
    SELECT s.id FROM orchestration_step s JOIN orchestration_hold h ON h.id = s.held_by_id
    WHERE h.until IS NOT NULL ORDER BY s.id LIMIT %(limit)s FOR NO KEY UPDATE OF s SKIP LOCKED
) RETURNING id
"""

# Of steps, those that somebody holds, or no worker serves, now: each scope by hold_once or
# hold_by_task, however many holds there are.
HELD = """
SELECT s.id FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE s.id = ANY(%(ids)s) AND (
    EXISTS (SELECT FROM orchestration_hold h WHERE h.until IS NULL AND h.scope = 'all')
    OR EXISTS (SELECT FROM orchestration_hold h WHERE h.until IS NULL AND h.scope = 'agent'
        AND h.agent = s.agent AND h.cause <> 'breaker')
    OR EXISTS (SELECT FROM orchestration_hold h WHERE h.until IS NULL AND h.scope = 'step'
        AND h.agent = '' AND h.workflow = t.workflow AND h.step = s.name)
    OR EXISTS (SELECT FROM orchestration_hold h WHERE h.until IS NULL AND h.task_id = s.task_id))
"""

# The agents whose queue a worker serves, and yet they are held for want of one; and the opposite.
SERVICE_CHANGED = f"""
SELECT p.agent, w.served FROM orchestration_policy p
CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM orchestration_worker w WHERE w.queue = p.agent
    AND w.seen_at > clock_timestamp() - interval '{conf.ALIVE} seconds') AS served) w
WHERE w.served = EXISTS (SELECT FROM orchestration_hold h
    WHERE h.agent = p.agent AND h.cause = 'no_worker' AND h.until IS NULL)
UNION ALL
SELECT h.agent, true FROM orchestration_hold h  -- of an agent that is gone: nothing to hold
WHERE h.cause = 'no_worker' AND h.until IS NULL
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
RETURNING task_id
"""

RELEASE_TASKS = """
UPDATE orchestration_hold SET until = clock_timestamp(), released_by = %(actor)s,
    released_why = %(reason)s
WHERE task_id = ANY(%(tasks)s::uuid[]) AND scope = 'task' AND cause = 'hand' AND until IS NULL
RETURNING task_id
"""


@dataclass(kw_only=True)
class Parking:
    """The holds in force on steps, tasks and everything; held steps are parked when they are met.

    So a hold costs nothing for what never comes to the gate, and each held step is met once.
    """

    everything: bool = False
    lately: bool = False
    by_task: dict[UUID, int] = field(default_factory=dict)
    by_step: dict[tuple[str, str], int] = field(default_factory=dict)

    def hold_of(self, task: UUID, workflow: str, step: str) -> int | None:
        """Return the hold that keeps a step, if one does."""
        return self.by_task.get(task) or self.by_step.get((workflow, step))

    def park(self, held: Mapping[int, int]) -> None:
        """Take pending, locked steps out of the claim's sight: step → hold."""
        sql.run(PARK, {"ids": list(held), "holds": list(held.values())})


def parking(*, lately: bool) -> Parking:
    """Read the holds in force that concern more, or less, than one agent.

    There are none unless there was one of any kind `lately`.
    """
    found = Parking(lately=lately)
    if not lately:
        return found
    for hold, scope, task, workflow, step in sql.run(IN_FORCE, {}):
        if scope == Scope.ALL:
            found.everything = True
        elif scope == Scope.TASK:
            found.by_task[task] = hold
        else:
            found.by_step[workflow, step] = hold
    return found


@transaction.atomic
def hold(
    *,
    actor: str,
    reason: str,
    agent: str = "",
    workflow: str = "",
    step: str = "",
    task: UUID | None = None,
    cause: Cause = Cause.HAND,
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
        if not sql.is_twin(error):
            raise
        return Refusal.HELD_ALREADY
    if cause == Cause.HAND:
        _tell(made, EventKind.HELD, actor, reason)
    return made


@transaction.atomic
def release(hold_id: int, *, actor: str, reason: str) -> Refusal | None:
    """End a hold that was made by hand; return why not, or None when it was done.

    Its steps may be claimed from the supervisor's next sweep on.
    """
    done = Hold.objects.filter(id=hold_id, until=None, cause=Cause.HAND).update(
        until=DatabaseNow(), released_by=actor, released_why=reason
    )
    if not done:
        return Refusal.NOT_HELD
    _tell(Hold.objects.get(id=hold_id), EventKind.RELEASED, actor, reason)
    return None


def _tell(held: Hold, kind: EventKind, actor: str, reason: str) -> None:
    """Write what somebody did to a hold; to one on more than a task, by what it holds."""
    detail = {} if held.task_id else {"target": held.target}
    Event.objects.create(task_id=held.task_id, kind=kind, actor=actor, reason=reason, detail=detail)


@transaction.atomic
def hold_tasks(
    tasks: Collection[UUID], *, actor: str, reason: str, operation: int
) -> dict[UUID, Refusal | None]:
    """Hold tasks; return for each why not, or None when it was done."""
    told = {"actor": actor, "reason": reason, "tasks": [str(task) for task in tasks]}
    held = {task for (task,) in sql.run(HOLD_TASKS, told)}
    _note(held, EventKind.HELD, actor, reason, operation)
    missed = Task.objects.filter(id__in=set(tasks) - held).values_list("id", "state")
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
    told = {"actor": actor, "reason": reason, "tasks": [str(task) for task in tasks]}
    released = {task for (task,) in sql.run(RELEASE_TASKS, told)}
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
    """Return those of `steps` that a hold keeps now: nothing irreversible follows from them by itself."""
    return {step for (step,) in sql.run(HELD, {"ids": list(steps)})} if steps else set()


@transaction.atomic
def let_go() -> int:
    """Give steps of ended holds back to the claim, a batch at most; return how many."""
    return len(sql.run(LET_GO, {"limit": conf.BATCH}))


def hold_unserved() -> None:
    """Hold the agents whose queue no worker serves, and release those that are served again."""
    changed = dict(sql.run(SERVICE_CHANGED, {}))
    for agent in sorted(name for name, served in changed.items() if not served):
        hold(
            agent=agent, cause=Cause.NO_WORKER, actor="supervisor",
            reason="no worker serves its queue",
        )  # fmt: skip
    if back := [name for name, served in changed.items() if served]:
        Hold.objects.filter(cause=Cause.NO_WORKER, until=None, agent__in=back).update(
            until=DatabaseNow(), released_by="supervisor", released_why="a worker serves it again"
        )
