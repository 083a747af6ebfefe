"""The supervisor's writes: failed or expired steps go back to pending, or to error (P10, P11, P26)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from .. import sql
from ..models import Event, Step, Task
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..states import LIVE_TASK_STATES, Outcome, StepState
from .settle import Trouble, settle_tasks, to_error

EXPIRED_HISTORY = """
INSERT INTO orchestration_attempt (step_id, number, generation, scheduler, agent, dispatched_at,
    ended_at, outcome, tries, error_code, error_message)
SELECT id, attempt, generation, locked_by, '', dispatched_at, clock_timestamp(), 'expired', 0,
    'expired', %(message)s
FROM orchestration_step WHERE id = ANY(%(ids)s)
"""

RETRY = """
UPDATE orchestration_step s SET
    process_state = 'pending', locked_by = NULL, complete_by = NULL,
    failure_count = r.failure_count, outcome = r.outcome,
    error_code = r.code, error_message = r.message,
    run_after = clock_timestamp() + r.wait * interval '1 second'
FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(counts)s::int[], %(waits)s::float8[],
    %(outcomes)s::text[], %(codes)s::text[], %(messages)s::text[])
    AS r (id, attempt, failure_count, wait, outcome, code, message)
WHERE s.id = r.id AND s.attempt = r.attempt AND s.process_state = 'processing'
"""

WAKE = """
UPDATE orchestration_step SET run_after = NULL WHERE id = ANY(%(ids)s)
"""

NO_REPLY = "no reply came before its deadline: the agent died, hung, or is slow"


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A step whose attempt failed or expired; its task is locked."""

    id: int
    task: UUID
    name: str
    agent: str
    attempt: int
    failure_count: int
    outcome: str
    code: str
    message: str


def lock_failed(limit: int) -> list[Failed]:
    """Lock the tasks of up to `limit` steps whose complete-by has passed; return those steps.

    Skips what somebody else is at: the next sweep finds it. Writes the history of attempts that
    ended in silence.
    """
    expired = Step.objects.filter(
        process_state=StepState.PROCESSING, complete_by__lte=DatabaseNow()
    )
    found = expired.order_by("complete_by").values_list("task_id", flat=True)[:limit]
    locked = list(
        Task.objects.select_for_update(skip_locked=True, no_key=True)
        .filter(id__in=list(found))
        .order_by("id")
        .values_list("id", flat=True)
    )
    steps = list(expired.filter(task__in=locked).order_by("id"))
    silent = [step.id for step in steps if step.locked_by is not None]
    if silent:
        sql.run(EXPIRED_HISTORY, {"ids": silent, "message": NO_REPLY})
    return [_as_failed(step) for step in steps]


def _as_failed(step: Step) -> Failed:
    silent = step.locked_by is not None
    return Failed(
        id=step.id,
        task=step.task_id,
        name=step.name,
        agent=step.agent,
        attempt=step.attempt,
        failure_count=step.failure_count,
        outcome=Outcome.EXPIRED if silent else step.outcome,
        code="expired" if silent else step.error_code,
        message=NO_REPLY if silent else step.error_message,
    )


def retry(steps: Sequence[tuple[Failed, int, float]], *, by: str) -> None:
    """Make failed steps pending again: (step, new failure count, seconds to wait) each."""
    if not steps:
        return
    sql.run(
        RETRY,
        {
            "ids": [step.id for step, _, _ in steps],
            "attempts": [step.attempt for step, _, _ in steps],
            "counts": [count for _, count, _ in steps],
            "waits": [wait for _, _, wait in steps],
            "outcomes": [step.outcome for step, _, _ in steps],
            "codes": [step.code for step, _, _ in steps],
            "messages": [step.message for step, _, _ in steps],
        },
    )
    Event.objects.bulk_create(
        Event(
            task_id=step.task,
            step_id=step.id,
            kind=EventKind.RETRY,
            actor=by,
            attempt=step.attempt,
            reason=f"failure {count} ({step.code or step.outcome}): again in {wait:.1f} s",
        )
        for step, count, wait in steps
    )


def give_up(steps: Sequence[Failed], *, by: str) -> None:
    """Set steps that failed past their threshold to error, with an alert."""
    if not steps:
        return
    to_error(
        [
            Trouble(
                step=step.id,
                code=step.code or step.outcome,
                message=f"{step.message} (failed {step.failure_count + 1} times)".strip(),
                attempt=step.attempt,
                failures=1,
            )
            for step in steps
        ],
        by=by,
    )
    settle_from_database({step.task for step in steps})


def settle_from_database(tasks: set[UUID]) -> None:
    """Settle locked tasks by the states of their steps as they are in the database."""
    states: dict[UUID, tuple[str, list[str]]] = {}
    rows = Step.objects.filter(task__in=tasks).values_list(
        "task_id", "task__state", "process_state"
    )
    for task, current, state in rows:
        states.setdefault(task, (current, []))[1].append(state)
    settle_tasks(states)


@transaction.atomic
def wake(limit: int) -> int:
    """End the wait of retries whose time has come; return how many."""
    due: list[Any] = list(
        Step.objects.select_for_update(skip_locked=True, no_key=True)
        .filter(process_state=StepState.PENDING, run_after__lte=DatabaseNow())
        .order_by("id")
        .values_list("id", flat=True)[:limit]
    )
    if due:
        sql.run(WAKE, {"ids": due})
    return len(due)


def mark_overdue(limit: int) -> list[Task]:
    """Mark live tasks past their own complete-by; return them. They go on: it is a warning."""
    tasks = list(
        Task.objects.select_for_update(skip_locked=True, no_key=True)
        .filter(state__in=LIVE_TASK_STATES, overdue=False, complete_by__lte=DatabaseNow())
        .order_by("id")[:limit]
    )
    Task.objects.filter(id__in=[task.id for task in tasks]).update(overdue=True)
    Event.objects.bulk_create(
        Event(task=task, kind=EventKind.OVERDUE, actor="supervisor", reason="past its time allowed")
        for task in tasks
    )
    return tasks
