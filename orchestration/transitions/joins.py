"""Note of children that have ended what they come to, and have a scheduler look at those of their step."""

import logging
from collections.abc import Collection, Iterable

from ..database import prepared, sql
from ..decisions.readiness import value_of
from ..models import Task
from ..models.join import ALL
from ..payloads.placeholders import Unresolved
from ..states import FINAL_TASK_STATES, TaskState
from .change import Change
from .step_update import require

logger = logging.getLogger(__name__)

RESULTS = """
UPDATE orchestration_task t SET result = r.result
FROM unnest(%(ids)s::uuid[], %(results)s::jsonb[]) AS r (id, result)
WHERE t.id = r.id AND t.state = 'processed'
RETURNING t.id
"""
# Asks for a look at each step that has no child left, or for which some of them are enough. Children that
# end at the same time in other transactions seem not to have ended. So the last child that has not ended
# (along task_child_unended), and that no other session has locked, is locked here: its end comes after this
# commit, and sees this one's. Without such a child the look is asked for, maybe by several.
ENDED = """
INSERT INTO orchestration_join (step_id, task_id)
SELECT s.id, s.task_id FROM orchestration_step s
LEFT JOIN LATERAL (
    SELECT t.id FROM orchestration_task t WHERE t.parent_id = s.id AND t.ended_at IS NULL
    ORDER BY t.position DESC LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS other ON true
WHERE s.id = ANY(%(steps)s::bigint[]) AND (other.id IS NULL OR s.flow ? 'enough')
RETURNING id
"""
ASKED = """
INSERT INTO orchestration_join (step_id, task_id, undo_below)
SELECT id, task_id, %(below)s::int FROM orchestration_step WHERE id = ANY(%(steps)s::bigint[])
"""


def ended(changes: Iterable[Change]) -> bool:
    """Note what children come to that have ended; return whether a scheduler is to look at any of a step.

    The states of their tasks are written.
    """
    children = [
        change
        for change in changes
        if change.parent is not None and change.task_states and change.state in FINAL_TASK_STATES
    ]
    if not children:
        return False
    _note([change for change in children if change.state == TaskState.PROCESSED])
    steps = sorted({change.parent for change in children if change.parent is not None})
    return bool(prepared.run(ENDED, {"steps": steps}))


def _note(processed: Collection[Change]) -> None:
    """Put the values into the templates of results; one that cannot be filled in is NULL from then on."""
    if not processed:
        return
    ids = [change.id for change in processed]
    templates = dict(Task.objects.filter(id__in=ids).values_list("id", "result"))
    results = []
    for change in processed:
        try:
            steps = change.steps.values()
            results.append(value_of(templates[change.id], steps, change.data))
        except Unresolved as error:
            logger.error("the result of %s cannot be built: %s", change.reference, error)
            results.append(None)
    values = {"ids": [str(number) for number in ids], "results": sql.as_json(results)}
    require(prepared.run(RESULTS, values), ids)


def look_at(steps: Collection[int]) -> None:
    """Have a scheduler look at the children of steps, which have been made before."""
    sql.run(ASKED, {"steps": list(steps), "below": None})


def undo_all(steps: Collection[int], below: int = ALL) -> None:
    """Have schedulers undo children of steps: those at positions below that."""
    sql.run(ASKED, {"steps": list(steps), "below": below})
