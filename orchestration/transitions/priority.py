"""Change a task's priority, and the place of its unfinished steps (P16)."""

from uuid import UUID

from django.db import transaction

from ..database import sql
from ..decisions.fairness import Arrival, Line
from ..decisions.progress import Refusal
from ..models import Task
from ..models.history import EventKind
from ..states import ENDED_STEP_STATES, FINAL_TASK_STATES, StepState
from .locked_task import lock, note
from .turns import next_turns
from .versions import require, versions

# A step that waits stands at the end of its key's line at the new priority, as if it came there now.
MOVED = """
UPDATE orchestration_step s SET priority = %(priority)s, turn = coalesce(r.turn, s.turn)
FROM unnest(%(ids)s::bigint[], %(states)s::text[], %(attempts)s::int[], %(generations)s::int[],
    %(turns)s::bigint[]) AS r (id, state, attempt, generation, turn)
WHERE s.id = r.id
    AND (s.process_state, s.attempt, s.generation) = (r.state, r.attempt, r.generation)
RETURNING s.id
"""


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
    places = {"priority": priority, "turns": [turns.get(step.id) for step in steps]}
    require(sql.run(MOVED, {**versions(steps), **places}), steps)
    tasks = Task.objects.filter(id=task_id, state=change.state, priority=change.priority)
    require(tasks.update(priority=priority), 1)
    note(
        change, None, EventKind.PRIORITY, by=actor, reason=reason,
        before={"priority": change.priority}, after={"priority": priority},
    ).save()  # fmt: skip
    return None
