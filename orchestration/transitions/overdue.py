"""Tasks past their own time are marked, after what they could not help is put to it (P12)."""

from datetime import datetime

from .. import news, sql
from ..models import Event, Task
from ..models.history import EventKind
from ..states import LIVE_TASK_STATES
from .holds import STOOD

# What waited at an open breaker, or in a hold, gets that time back: its own, and what was noted at
# the claims. A step that is being claimed at this moment is passed over; its claim notes it. So does
# each by how much the clock went forward meanwhile: a jump need not touch every task that is live.
PUT_OFF = f"""
WITH given AS MATERIALIZED (
    SELECT s.id, s.task_id, s.stood_still, CASE s.process_state WHEN 'pending' THEN {STOOD}
        ELSE 0 END AS now
    FROM orchestration_step s WHERE s.task_id = ANY(%(ids)s::uuid[])
    ORDER BY s.id FOR NO KEY UPDATE SKIP LOCKED
), noted AS (
    UPDATE orchestration_step s SET stood_still = -given.now FROM given
    WHERE s.id = given.id AND s.stood_still <> -given.now
)
UPDATE orchestration_task t SET clock_jumps = late.jumps, complete_by = t.complete_by
    + (late.stood_still + greatest(0, late.jumps - t.clock_jumps)) * interval '1 second'
FROM (SELECT l.id, coalesce(sum(given.stood_still + given.now), 0) AS stood_still,
        (SELECT coalesce(sum(seconds), 0) FROM orchestration_clockjump) AS jumps
    FROM unnest(%(ids)s::uuid[]) AS l (id) LEFT JOIN given ON given.task_id = l.id
    GROUP BY l.id) AS late
WHERE t.id = late.id AND (late.stood_still > 0.001 OR late.jumps <> t.clock_jumps)
RETURNING t.id, t.complete_by > (SELECT clock_timestamp())
"""  # noqa: S608 - a constant of our own


def mark_overdue(limit: int, *, now: datetime) -> list[Task]:
    """Mark live tasks past their own complete-by; return them. They go on: it is a warning.

    The deadline of those that waited at an open breaker, or in a hold, or through a jump of the clock,
    is put off by that time first. `now` is the leader's verified time.
    """
    tasks = list(
        Task.objects.select_for_update(skip_locked=True, no_key=True)
        .filter(state__in=LIVE_TASK_STATES, overdue=False, complete_by__lte=now)
        .order_by("complete_by")[:limit]  # along task_due; nothing is waited for
    )
    if not tasks:
        return []
    rows = sql.run(PUT_OFF, {"ids": [str(task.id) for task in tasks]})
    in_time = {task for task, later in rows if later}
    late = [task for task in tasks if task.id not in in_time]
    Task.objects.filter(id__in=[task.id for task in late]).update(overdue=True)
    Event.objects.bulk_create(
        Event(
            task=task, kind=EventKind.OVERDUE, actor="housekeeper", reason="past its time allowed"
        )
        for task in late
    )
    news.write([], [task.id for task in late if task.keeper])
    return late
