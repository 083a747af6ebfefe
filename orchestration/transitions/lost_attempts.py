"""Expire the attempts of a dead worker at once (P10)."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from ..database import sql

# Under the locks of the tasks; what others have locked is found by the next sweep.
EXPIRE = """
WITH lost AS (
    SELECT s.id, s.attempt, s.generation
    FROM unnest(%(steps)s::bigint[], %(attempts)s::int[]) AS l (id, attempt)
    JOIN orchestration_step s USING (id, attempt) JOIN orchestration_task t ON t.id = s.task_id
    WHERE s.process_state = 'processing' AND s.locked_by IS NOT NULL
        AND s.dispatched_at <= %(before)s AND s.complete_by > (SELECT clock_timestamp())
    ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED
)
UPDATE orchestration_step s SET complete_by = clock_timestamp()
FROM lost WHERE s.id = lost.id AND s.process_state = 'processing' AND s.locked_by IS NOT NULL
    AND (s.attempt, s.generation) = (lost.attempt, lost.generation)
"""


@transaction.atomic
def expire_lost(attempts: Mapping[int, int], *, before: datetime) -> None:
    """Have attempts expire now: step → attempt, of those that were dispatched `before` some time.

    What was answered or given up meanwhile is left as it is.
    """
    if attempts:
        lost = {"steps": list(attempts), "attempts": list(attempts.values()), "before": before}
        sql.run(EXPIRE, lost)
