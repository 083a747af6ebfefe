"""Change a task's priority, and the place of its unfinished steps (P16)."""

from uuid import UUID

from django.db import transaction

from ..decisions.fairness import Arrival, Line
from ..decisions.progress import Refusal
from ..models import Task
from ..models.history import EventKind
from ..states import ENDED_STEP_STATES, FINAL_TASK_STATES, StepState
from .locked_task import lock
from .step_update import StepUpdate, require
from .turns import next_turns

# A step that waits stands at the end of its key's line at the new priority, as if it came there now.
MOVED = StepUpdate(
    "priority = r.priority, turn = coalesce(r.turn, s.turn)", priority="smallint", turn="bigint"
)


@transaction.atomic
def prioritize(
    task_id: UUID, priority: int, *, actor: str, reason: str, seen: int | None = None
) -> Refusal | None:
    """Give a task another priority; return why not, or None when it was done.

    It holds for its steps that have not ended, and from the next claim on. `seen` is the priority that
    it had when this was decided: if it has another by now, nothing happens.
    """
    change = lock([task_id]).get(task_id)
    if change is None:
        return Refusal.NO_SUCH_TASK
    if change.state in FINAL_TASK_STATES:
        return Refusal.ENDED
    if seen is not None and seen != change.priority:
        return Refusal.CHANGED
    if priority == change.priority:
        return Refusal.SAME_PRIORITY
    steps = [step for step in change.steps.values() if step.state not in ENDED_STEP_STATES]
    waiting = [step for step in steps if step.state == StepState.PENDING]
    lines = [Line(step.agent, priority, change.fairness_key) for step in waiting]
    ids = [step.id for step in waiting]
    turns = dict(zip(ids, next_turns([Arrival(line) for line in lines]), strict=True))
    MOVED.write(
        steps, priority=[priority] * len(steps), turn=[turns.get(step.id) for step in steps]
    )
    tasks = Task.objects.filter(id=task_id, state=change.state, priority=change.priority)
    require(tasks.update(priority=priority), 1)
    change.note(
        None, EventKind.PRIORITY, by=actor, reason=reason,
        before={"priority": change.priority}, after={"priority": priority},
    ).save()  # fmt: skip
    return None
