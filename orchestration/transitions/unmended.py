"""Tasks with a step in error that was not mended in time are to be undone, unless a hold keeps them (P11)."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from .. import sql
from ..models import Step
from ..models.fields import DatabaseNow
from ..states import StepState
from . import clock_jump
from .changes import lock, tasks_of
from .holds import STOOD, held
from .undo_requests import request

SELDOM = 60.0  # seconds between two looks at a step that is held

# Steps whose time has passed have as much more as they stood still in holds since the last look. What
# is held now is looked at again after a while.
PUT_OFF = f"""
WITH late AS MATERIALIZED (
    SELECT id, task_id, name, agent, greatest(ended_at, mend_since) AS pending_since
    FROM orchestration_step WHERE id = ANY(%(ids)s)
), stood AS (
    SELECT s.id, s.id = ANY(%(held)s) AS held, {STOOD} * interval '1 second' AS time FROM late s
)
UPDATE orchestration_step s SET mend_since = clock_timestamp(), mend_by = greatest(
    s.mend_by + stood.time,
    CASE WHEN stood.held THEN clock_timestamp() + {SELDOM} * interval '1 second' END)
FROM stood WHERE s.id = stood.id AND (stood.held OR stood.time >= interval '1 second')
RETURNING s.id, s.mend_by > (SELECT clock_timestamp())
"""  # noqa: S608 - constants of our own


def _due(now: datetime) -> QuerySet[Step]:
    """Return what is due at `now`, and still is if the clock has gone back since."""
    due = Step.objects.filter(process_state=StepState.ERROR, mend_by__lte=now)
    return clock_jump.due(due.filter(mend_by__lte=DatabaseNow()), "mend_by")


def unmended_tasks(limit: int, beyond: Collection[UUID] = (), *, now: datetime) -> list[UUID]:
    """Return the tasks of `limit` steps in error not mended in time, oldest first, `beyond` some.

    `now` is the leader's verified time: what is undone by mistake cannot be taken back.
    """
    return tasks_of(_due(now).order_by("mend_by"), limit, beyond)


@transaction.atomic
def request_undo_of_unmended(tasks: Collection[UUID], *, by: str, now: datetime) -> tuple[int, int]:
    """Ask for the undo of tasks with a step in error that was not mended in time.

    Returns for how many it is asked, and how many have more time: what a hold keeps stands still. Skips
    tasks that others have locked: the next sweep finds them. The steps stay in error, without a time:
    where something irreversible forbids the undo, an operator decides.
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
    Step.objects.filter(id__in=[step for step, *_ in unmended]).update(mend_by=None)
    return len({task for _, task, *_ in unmended}), len(later)


def _put_off(steps: Sequence[int]) -> set[int]:
    """Give steps of locked tasks the time for which they stood still; return those that have some left."""
    if not steps:
        return set()
    given = {"ids": list(steps), "held": list(held(steps))}
    return {step for step, later in sql.run(PUT_OFF, given) if later}
