"""Mark tasks past their complete-by, after extending it by times in holds and waits for results (P12)."""

from datetime import datetime

from ..applications import outbox
from ..database import sql
from ..models import Event, Task
from ..models.history import EventKind
from ..states import LIVE_TASK_STATES
from .held_time import HELD_SECONDS, SECONDS_TO_AWAIT
from .step_update import require

# Tasks whose steps waited at an open breaker, or in a hold, get that time back: what was stored at the
# claims, and what waits now. A step that is being claimed is skipped; its claim stores it. Those that await
# a result get all the time that this may take at once, so that a long wait is not looked at again. They also
# get the seconds by which the clock jumped ahead, so that a jump need not touch every live task.
EXTEND = f"""
WITH given AS MATERIALIZED (
    SELECT s.id, s.process_state, s.attempt, s.generation, s.task_id, s.held_seconds,
        CASE s.process_state WHEN 'pending' THEN {HELD_SECONDS} WHEN 'awaiting' THEN {SECONDS_TO_AWAIT}
        ELSE 0 END AS now
    FROM orchestration_step s WHERE s.task_id = ANY(%(ids)s::uuid[])
    ORDER BY s.id FOR NO KEY UPDATE SKIP LOCKED
), noted AS (
    UPDATE orchestration_step s SET held_seconds = -given.now FROM given
    WHERE s.id = given.id AND s.held_seconds <> -given.now AND (s.process_state, s.attempt, s.generation)
        = (given.process_state, given.attempt, given.generation)
)
UPDATE orchestration_task t SET clock_jumps = late.jumps, complete_by = t.complete_by
    + (late.held_seconds + greatest(0, late.jumps - t.clock_jumps)) * interval '1 second'
FROM (SELECT l.id, l.state, coalesce(sum(given.held_seconds + given.now), 0) AS held_seconds,
        (SELECT coalesce(sum(seconds), 0) FROM orchestration_clockjump) AS jumps
    FROM unnest(%(ids)s::uuid[], %(states)s::text[]) AS l (id, state)
    LEFT JOIN given ON given.task_id = l.id
    GROUP BY l.id, l.state) AS late
WHERE t.id = late.id AND t.state = late.state AND (late.held_seconds > 0.001 OR late.jumps <> t.clock_jumps)
RETURNING t.id, t.complete_by > (SELECT clock_timestamp())
"""  # noqa: S608 - a constant of our own


def mark_overdue(limit: int, *, now: datetime) -> list[Task]:
    """Mark live tasks past their own complete-by; return them. They go on: it is a warning.

    The deadline of those that waited at an open breaker, in a hold, for a result that comes later, or
    through a jump of the clock, is put off by that time first. `now` is the leader's verified time.
    """
    tasks = list(
        Task.objects.select_for_update(skip_locked=True, no_key=True)
        .filter(state__in=LIVE_TASK_STATES, overdue=False, complete_by__lte=now)
        .order_by("complete_by")[:limit]  # along task_due; nothing is waited for
    )
    if not tasks:
        return []
    seen = {"ids": [str(task.id) for task in tasks], "states": [task.state for task in tasks]}
    rows = sql.run(EXTEND, seen)
    in_time = {task for task, later in rows if later}
    late = [task for task in tasks if task.id not in in_time]
    live = Task.objects.filter(id__in=[task.id for task in late], state__in=LIVE_TASK_STATES)
    require(live.update(overdue=True), late)
    Event.objects.bulk_create(
        Event(
            task=task, kind=EventKind.OVERDUE, actor="housekeeper", reason="past its time allowed"
        )
        for task in late
    )
    outbox.write([], [task.id for task in late if task.owner_application])
    return late
