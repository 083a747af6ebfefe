"""What becomes of the items of operations is noted as it happens: here, that a step failed again."""

from collections.abc import Sequence
from uuid import UUID

from .. import sql

# A step by its own item, and a task that is undone by its. Only items that are under way: whoever
# makes one so has committed before the step can fail. The cause is the one the step has by now.
FAILED = """
WITH failed AS (
    SELECT f.step, f.task, f.said, coalesce(n.fingerprint, a.fingerprint, '') AS cause
    FROM unnest(%(steps)s::bigint[], %(tasks)s::uuid[], %(said)s::text[]) AS f (step, task, said)
    JOIN orchestration_step s ON s.id = f.step
    LEFT JOIN orchestration_alert a ON a.id = s.alert_id
    LEFT JOIN orchestration_incident n ON n.id = s.incident_id
), steps AS (
    UPDATE orchestration_operationitem i SET
        state = CASE WHEN i.cause = f.cause THEN 'again' ELSE 'other' END,
        reason = left(f.said, 500), ended_at = clock_timestamp()
    FROM failed f WHERE i.step_id = f.step AND i.state = 'sent'
)
UPDATE orchestration_operationitem i SET
    state = 'other', reason = left(f.said, 500), ended_at = clock_timestamp()
FROM (SELECT task, min(said) AS said FROM failed GROUP BY task) f
WHERE i.task_id = f.task AND i.step_id IS NULL AND i.state = 'sent'
"""


def failed(steps: Sequence[tuple[int, UUID, str]]) -> None:
    """Note that steps have gone to error: each with its task, and what was said."""
    sql.run(
        FAILED,
        {
            "steps": [step for step, _, _ in steps],
            "tasks": [str(task) for _, task, _ in steps],
            "said": [said for _, _, said in steps],
        },
    )
