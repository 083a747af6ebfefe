"""Request the undo of tasks whose error was not resolved in time (P11)."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from ..database import sql
from ..models import Step
from ..models.fields import DatabaseNow
from ..states import StepState
from . import clock_jump, moves
from .held_time import HELD_SECONDS
from .holds import held
from .locked_task import lock, tasks_of
from .settle import finish
from .undo_requests import request

SELDOM = 60.0  # seconds between two looks at a step that is held

# The time of due steps is extended by their time in holds since the last look. Steps that are held
# now are looked at again later.
EXTEND = f"""
WITH late AS MATERIALIZED (
    SELECT id, attempt, generation, task_id, name, agent,
        greatest(ended_at, holds_counted_until) AS pending_since
    FROM orchestration_step WHERE id = ANY(%(ids)s)
), waited AS (
    SELECT s.id, s.attempt, s.generation, s.id = ANY(%(held)s) AS held,
        {HELD_SECONDS} * interval '1 second' AS time FROM late s
)
UPDATE orchestration_step s SET holds_counted_until = clock_timestamp(), resolve_by = greatest(
    s.resolve_by + waited.time,
    CASE WHEN waited.held THEN clock_timestamp() + {SELDOM} * interval '1 second' END)
FROM waited WHERE s.id = waited.id AND s.process_state = 'error'
    AND (s.attempt, s.generation) = (waited.attempt, waited.generation)
    AND (waited.held OR waited.time >= interval '1 second')
RETURNING s.id, s.resolve_by > (SELECT clock_timestamp())
"""  # noqa: S608 - constants of our own


def _due(now: datetime) -> QuerySet[Step]:
    """Return the steps due at `now`, and also by the clock in case it has gone back since."""
    due = Step.objects.filter(process_state=StepState.ERROR, resolve_by__lte=now)
    return clock_jump.due(due.filter(resolve_by__lte=DatabaseNow()), "resolve_by")


def unmended_tasks(limit: int, excluded: Collection[UUID] = (), *, now: datetime) -> list[UUID]:
    """Return the tasks of `limit` steps in error not resolved in time, oldest first, except `excluded`.

    `now` is the leader's verified time: an undo by mistake cannot be taken back.
    """
    return tasks_of(_due(now).order_by("resolve_by"), limit, excluded)


@transaction.atomic
def request_undo_of_unmended(tasks: Collection[UUID], *, by: str, now: datetime) -> tuple[int, int]:
    """Request the undo of tasks with a step in error that was not resolved in time.

    Returns the number of requests, and the number of steps whose time was extended by holds. Skips tasks
    that others have locked: the next sweep finds them. The steps stay in error, without a time: if an
    irreversible effect prevents the undo, an operator decides.
    """
    changes = lock(tasks, wait=False)
    due = list(
        _due(now).filter(task__in=changes).values_list("id", "task_id", "name", "error_code")
    )
    later = _put_off([step for step, *_ in due])
    unmended = [(step, task, name, code) for step, task, name, code in due if step not in later]
    request(
        [
            (changes[task], changes[task].steps[step], f"{name} was not mended in time ({code})")
            for step, task, name, code in unmended
        ],
        by=by,
        unmended=True,
    )
    for step, task, *_ in unmended:
        changes[task].move(moves.UNDO_REQUESTED, changes[task].steps[step])
    finish([changes[task] for task in {task for _, task, *_ in unmended}], by=by)
    return len({task for _, task, *_ in unmended}), len(later)


def _put_off(steps: Sequence[int]) -> set[int]:
    """Give steps of locked tasks the time for which they stood still; return those that have some left."""
    if not steps:
        return set()
    values = {"ids": list(steps), "held": list(held(steps))}
    return {step for step, later in sql.run(EXTEND, values) if later}
