"""What belongs to a task: the tables, and how its rows are found there by an index."""

from dataclasses import dataclass

from ...models.inbox import STATUSES
from ...models.request import REQUESTS


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table with rows of tasks; `column` has the id of the task, or of a step of it."""

    name: str
    column: str
    index: str  # which finds them; a test compares it with the plan

    @property
    def where(self) -> str:
        """Return the condition of the rows of %(tasks)s, whose steps are %(steps)s."""
        if self.column == "step_id":
            return "step_id = ANY(%(steps)s::bigint[])"
        return f"{self.column} = ANY(%(tasks)s::uuid[])"

    @property
    def of_task(self) -> str:
        """Return the condition that row `r` belongs to task `t`."""
        if self.column == "step_id":
            return "r.step_id IN (SELECT id FROM orchestration_step WHERE task_id = t.id)"
        return f"r.{self.column} = t.id"


# In the order of removal: what refers to something goes before it. All have a key `id`.
TABLES = (
    Table(name="orchestration_event", column="task_id", index="orchestration_event_task_id"),
    Table(
        name="orchestration_incidenthit", column="step_id", index="orchestration_incidenthit_step"
    ),
    Table(
        name="orchestration_operationitem",
        column="task_id",
        index="orchestration_operationitem_task_id",
    ),
    Table(name="orchestration_hold", column="task_id", index="hold_by_task"),
    Table(name="orchestration_statusmessage", column="task_id", index="status_number_once"),
    Table(name="orchestration_attemptevidence", column="step_id", index="evidence_once"),
    Table(name="orchestration_wait", column="step_id", index="orchestration_wait_step_id_key"),
    Table(name="orchestration_externalid", column="step_id", index="external_id_once"),
    Table(name="orchestration_attempt", column="step_id", index="attempt_once"),
    Table(name="orchestration_step", column="task_id", index="step_once"),
    Table(name="orchestration_task", column="id", index="orchestration_task_pkey"),
)

STEPS = """
SELECT id FROM orchestration_step WHERE task_id = ANY(%(tasks)s::uuid[])
"""
# A task `t` with none of these is needed no more: a status message that was neither taken nor closed, an
# item of an operation that goes on, a hold, an undo, a look at children or a request under way.
FREE = f"""NOT EXISTS (SELECT FROM orchestration_statusmessage m
        WHERE m.task_id = t.id AND NOT {STATUSES.where(STATUSES.closed)})
    AND NOT EXISTS (SELECT FROM orchestration_operationitem i
        JOIN orchestration_operation o ON o.id = i.operation_id
        WHERE i.task_id = t.id AND o.ended_at IS NULL)
    AND NOT EXISTS (SELECT FROM orchestration_hold h WHERE h.task_id = t.id AND h.until IS NULL)
    AND NOT EXISTS (SELECT FROM orchestration_undorequest u WHERE u.task_id = t.id)
    AND NOT EXISTS (SELECT FROM orchestration_join j WHERE j.task_id = t.id)
    AND NOT EXISTS (SELECT FROM orchestration_taskrequest r
        WHERE r.workflow = t.workflow AND r.reference = t.reference
        AND {REQUESTS.where(REQUESTS.open, "r")})"""  # noqa: S608 - put together from constants
