"""What a change of steps means for their task: error, processed, or on with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from .. import alerts, sql, status
from ..models import Event, Step
from ..models.history import EventKind
from ..models.inbox import StatusKind
from ..progression import task_state
from ..states import FINAL_TASK_STATES, TaskState

TO_ERROR = """
UPDATE orchestration_step s SET
    process_state = 'error', locked_by = NULL, complete_by = NULL,
    ended_at = clock_timestamp(), error_code = e.code, error_message = e.message,
    alert_id = e.alert, failure_count = s.failure_count + e.failures
FROM unnest(%(ids)s::bigint[], %(codes)s::text[], %(messages)s::text[], %(alerts)s::bigint[],
    %(failures)s::int[])
    AS e (id, code, message, alert, failures)
WHERE s.id = e.id AND s.process_state IN ('processing', 'waiting')
"""

SETTLED = """
UPDATE orchestration_task t SET
    state = s.state,
    ended_at = CASE WHEN s.final THEN clock_timestamp() END,
    overdue = t.overdue AND NOT s.final AND t.state <> 'error'  -- after an error it is said anew
FROM unnest(%(ids)s::uuid[], %(states)s::text[], %(final)s::bool[]) AS s (id, state, final)
WHERE t.id = s.id
"""

TOLD = {
    TaskState.PROCESSED: StatusKind.COMPLETED,
    TaskState.ERROR: StatusKind.FAILED,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """A step that ends in error: why, and how many failures this adds to its count."""

    step: int
    code: str
    message: str
    attempt: int
    failures: int = 0


def to_error(troubles: Sequence[Trouble], *, by: str) -> None:
    """Set steps to error, each with an open alert: processing or waiting → error.

    The caller holds the locks of their tasks, and settles them afterwards.
    """
    if not troubles:
        return
    rows = Step.objects.filter(id__in=[trouble.step for trouble in troubles])
    steps = {
        step: (task, name, workflow)
        for step, task, name, workflow in rows.values_list(
            "id", "task_id", "name", "task__workflow"
        )
    }
    alert_ids = alerts.raise_for_steps(
        [
            alerts.StepError(
                workflow=steps[trouble.step][2],
                step=steps[trouble.step][1],
                code=trouble.code,
                message=trouble.message,
            )
            for trouble in troubles
        ]
    )
    sql.run(
        TO_ERROR,
        {
            "ids": [trouble.step for trouble in troubles],
            "codes": [trouble.code[:100] for trouble in troubles],
            "messages": [trouble.message for trouble in troubles],
            "alerts": alert_ids,
            "failures": [trouble.failures for trouble in troubles],
        },
    )
    Event.objects.bulk_create(
        Event(
            task_id=steps[trouble.step][0],
            step_id=trouble.step,
            kind=EventKind.ERROR,
            actor=by,
            attempt=trouble.attempt,
            reason=f"{trouble.code}: {trouble.message}".strip(": "),
        )
        for trouble in troubles
    )


def settle_tasks(tasks: Mapping[UUID, tuple[str, Sequence[str]]]) -> set[str]:
    """Write each task's state where its steps' states change it; return the applications told.

    `tasks` maps ids to the task's current state and the states of all its steps.
    """
    changed: dict[UUID, TaskState] = {}
    resumed: list[Any] = []
    for task, (current, step_states) in tasks.items():
        state = task_state(current, step_states)
        if state != current:
            changed[task] = state
            if current == TaskState.ERROR:
                resumed.append(task)
    if not changed:
        return set()
    sql.run(
        SETTLED,
        {
            "ids": [str(task) for task in changed],
            "states": [state.value for state in changed.values()],
            "final": [state in FINAL_TASK_STATES for state in changed.values()],
        },
    )
    told = {task: TOLD[state] for task, state in changed.items() if state in TOLD}
    told |= {task: StatusKind.RESUMED for task in resumed if task not in told}
    return status.write(told)
