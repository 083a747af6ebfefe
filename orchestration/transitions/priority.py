"""Change a task's priority, and the place of its unfinished steps (P16)."""

from uuid import UUID

from django.db import transaction

from ..database import sql
from ..decisions.fairness import Arrival, Line
from ..decisions.progress import Refusal
from ..models import Event, Task
from ..models.history import EventKind
from ..states import ENDED_STEP_STATES, FINAL_TASK_STATES, StepState
from .change import Change
from .locked_task import lock
from .step_update import StepUpdate, require
from .turns import next_turns

# A step that waits stands at the end of its key's line at the new priority, as if it came there now.
MOVED = StepUpdate(
    "priority = r.priority, turn = coalesce(r.turn, s.turn)", priority="smallint", turn="bigint"
)
# A task, and what has not ended below it: along task_child_unended.
FAMILY = """
WITH RECURSIVE family AS (
    SELECT %(task)s::uuid AS id FROM orchestration_task WHERE id = %(task)s::uuid
    UNION ALL
    SELECT t.id FROM family JOIN orchestration_step s ON s.task_id = family.id
    JOIN orchestration_task t ON t.parent_id = s.id AND t.ended_at IS NULL)
SELECT id FROM family
"""


@transaction.atomic
def prioritize(
    task_id: UUID, priority: int, *, actor: str, reason: str, seen: int | None = None
) -> Refusal | None:
    """Give a task another priority; return why not, or None when it was done.

    It holds for its steps and children that have not ended, and from the next claim on. `seen` is the
    priority that it had when this was decided: if it has another by now, nothing happens.
    """
    changes = _with_children(task_id)
    change = changes.get(task_id)
    if change is None:
        return Refusal.NO_SUCH_TASK
    if change.state in FINAL_TASK_STATES:
        return Refusal.ENDED
    if seen is not None and seen != change.priority:
        return Refusal.CHANGED
    if priority == change.priority:
        return Refusal.SAME_PRIORITY
    moved = [
        each
        for each in changes.values()
        if each.priority != priority and each.state not in FINAL_TASK_STATES
    ]
    steps = [
        (each, step)
        for each in moved
        for step in each.steps.values()
        if step.state not in ENDED_STEP_STATES
    ]
    waiting = [(each, step) for each, step in steps if step.state == StepState.PENDING]
    lines = [Line(step.agent, priority, each.fairness_key) for each, step in waiting]
    ids = [step.id for _, step in waiting]
    turns = dict(zip(ids, next_turns([Arrival(line) for line in lines]), strict=True))
    MOVED.write(
        [step for _, step in steps],
        priority=[priority] * len(steps),
        turn=[turns.get(step.id) for _, step in steps],
    )
    states = {each.state for each in moved}
    tasks = Task.objects.filter(id__in=[each.id for each in moved], state__in=states)
    require(tasks.update(priority=priority), len(moved))
    for each in moved:
        each.note(
            None, EventKind.PRIORITY, by=actor, reason=reason,
            before={"priority": each.priority}, after={"priority": priority},
        )  # fmt: skip
    Event.objects.bulk_create([event for each in moved for event in each.events])
    return None


def _with_children(task_id: UUID) -> dict[UUID, Change]:
    """Lock a task and those of its children, and of theirs, that have not ended, with any made meanwhile."""
    changes: dict[UUID, Change] = {}
    while new := [task for (task,) in sql.run(FAMILY, {"task": task_id}) if task not in changes]:
        changes |= lock(new)
    return changes
