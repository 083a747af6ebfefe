"""Find out what other sessions have locked."""

from collections.abc import Collection
from uuid import UUID

from ..database import sql
from ..models import Task

LOCKED_STEPS = """
WITH free AS MATERIALIZED (
    SELECT id FROM orchestration_step WHERE task_id = ANY(%(tasks)s::uuid[])
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
SELECT DISTINCT task_id FROM orchestration_step
WHERE task_id = ANY(%(tasks)s::uuid[]) AND id NOT IN (SELECT id FROM free)
"""


def existing(tasks: Collection[UUID]) -> set[UUID]:
    """Return the existing ones of `tasks`: those that could not be locked are locked by others."""
    if not tasks:
        return set()
    return set(Task.objects.filter(id__in=tasks).values_list("id", flat=True))


def with_locked_steps(tasks: Collection[UUID]) -> set[UUID]:
    """Lock all steps of locked tasks; return the tasks with a step that another session has locked."""
    return {task for (task,) in sql.run(LOCKED_STEPS, {"tasks": [str(task) for task in tasks]})}
