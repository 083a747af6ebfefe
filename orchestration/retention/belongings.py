"""What belongs to a task: the tables, and how its rows are found there by an index."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with rows of tasks; `where` takes %(tasks)s and %(steps)s, the ids of both."""

    name: str
    where: str
    index: str  # which finds them; a test compares it with the plan
    key: str = "id"


# In the order of removal: what refers to something goes before it.
TABLES = (
    Table(
        name="orchestration_event",
        where="task_id = ANY(%(tasks)s::uuid[])",
        index="orchestration_event_task_id",
    ),
    Table(
        name="orchestration_incidenthit",
        where="step_id = ANY(%(steps)s::bigint[])",
        index="orchestration_incidenthit_step_id",
    ),
    Table(
        name="orchestration_operationitem",
        where="task_id = ANY(%(tasks)s::uuid[])",
        index="orchestration_operationitem_task_id",
    ),
    Table(
        name="orchestration_hold",
        where="task_id = ANY(%(tasks)s::uuid[])",
        index="hold_by_task",
    ),
    Table(
        name="orchestration_statusmessage",
        where="task_id = ANY(%(tasks)s::uuid[])",
        index="status_number_once",
    ),
    Table(
        name="orchestration_attempt",
        where="step_id = ANY(%(steps)s::bigint[])",
        index="attempt_once",
    ),
    Table(
        name="orchestration_step",
        where="task_id = ANY(%(tasks)s::uuid[])",
        index="step_once",
    ),
    Table(
        name="orchestration_task",
        where="id = ANY(%(tasks)s::uuid[])",
        index="orchestration_task_pkey",
    ),
)

STEPS = """
SELECT id FROM orchestration_step WHERE task_id = ANY(%(tasks)s::uuid[])
"""
# A task `t` with none of these is needed no more: a status message that was neither
# taken nor closed, an item of an operation that goes on, a hold, an undo or a request under way.
FREE = """NOT EXISTS (SELECT FROM orchestration_statusmessage m
        WHERE m.task_id = t.id AND m.closed_at IS NULL)
    AND NOT EXISTS (SELECT FROM orchestration_operationitem i
        JOIN orchestration_operation o ON o.id = i.operation_id
        WHERE i.task_id = t.id AND o.ended_at IS NULL)
    AND NOT EXISTS (SELECT FROM orchestration_hold h WHERE h.task_id = t.id AND h.until IS NULL)
    AND NOT EXISTS (SELECT FROM orchestration_undorequest u WHERE u.task_id = t.id)
    AND NOT EXISTS (SELECT FROM orchestration_taskrequest r
        WHERE r.workflow = t.workflow AND r.reference = t.reference
        AND r.done_at IS NULL AND r.refused_at IS NULL)"""
