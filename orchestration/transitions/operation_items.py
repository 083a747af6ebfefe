"""Mark bulk-operation items whose step or undo failed again."""

from collections.abc import Sequence
from uuid import UUID

from ..database import sql

# A step's own item, and the item of a task that is undone. Only items under way: their state was
# committed before the step could fail. The cause is the step's present one.
FAILED = """
WITH failed AS (
    SELECT f.step, f.task, f.reason, coalesce(n.fingerprint, a.fingerprint, '') AS cause
    FROM unnest(%(steps)s::bigint[], %(tasks)s::uuid[], %(reason)s::text[]) AS f (step, task, reason)
    JOIN orchestration_step s ON s.id = f.step
    LEFT JOIN orchestration_alert a ON a.id = s.alert_id
    LEFT JOIN orchestration_incident n ON n.id = s.incident_id
), steps AS (
    UPDATE orchestration_operationitem i SET
        state = CASE WHEN i.cause = f.cause THEN 'again' ELSE 'other' END,
        reason = left(f.reason, 500), ended_at = clock_timestamp()
    FROM failed f WHERE i.step_id = f.step AND i.state = 'sent'
)
UPDATE orchestration_operationitem i SET
    state = 'other', reason = left(f.reason, 500), ended_at = clock_timestamp()
FROM (SELECT task, min(reason) AS reason FROM failed GROUP BY task) f
WHERE i.task_id = f.task AND i.step_id IS NULL AND i.state = 'sent'
"""


def failed(steps: Sequence[tuple[int, UUID, str]]) -> None:
    """Mark the items of steps that went to error; each step comes with its task and the reason."""
    sql.run(
        FAILED,
        {
            "steps": [step for step, _, _ in steps],
            "tasks": [str(task) for _, task, _ in steps],
            "reason": [reason for _, _, reason in steps],
        },
    )
