"""Write steps' errors, and the states of tasks that follow from their steps."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from ..alerting import alerts
from ..applications.outbox import StatusUpdate, write
from ..database import prepared, sql
from ..decisions.progress import StepView, task_state
from ..incidents import tallies
from ..incidents.fingerprint import Cause, normalise
from ..incidents.tallies import StepFailure
from ..models import Event
from ..models.history import EventKind
from ..models.inbox import StatusKind
from ..states import FINAL_TASK_STATES, Direction, Outcome, StepState, TaskState
from . import operation_items
from .versions import attempts, require

TO_ERROR = """
UPDATE orchestration_step s SET
    process_state = 'error', locked_by = NULL, complete_by = NULL, run_after = NULL,
    ended_at = clock_timestamp(), error_code = e.code, error_message = e.message,
    alert_id = e.alert, incident_id = e.incident, failure_count = s.failure_count + e.failures,
    resolve_by = clock_timestamp() + e.resolve_within * interval '1 second'
FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(generations)s::int[], %(codes)s::text[],
    %(messages)s::text[], %(alerts)s::bigint[], %(incidents)s::bigint[], %(failures)s::int[],
    %(resolve_within)s::float8[])
    AS e (id, attempt, generation, code, message, alert, incident, failures, resolve_within)
WHERE s.id = e.id AND (s.attempt, s.generation) = (e.attempt, e.generation)
    AND s.process_state IN ('processing', 'waiting', 'pending')
RETURNING s.id
"""

SETTLED = """
UPDATE orchestration_task t SET
    state = s.state,
    ended_at = CASE WHEN s.final THEN clock_timestamp() END,
    overdue = t.overdue AND NOT s.final AND t.state <> 'error'  -- after an error it is reported again
FROM unnest(%(ids)s::uuid[], %(before)s::text[], %(states)s::text[], %(final)s::bool[])
    AS s (id, before, state, final)
WHERE t.id = s.id AND t.state = s.before
RETURNING t.id
"""

STATUS_KINDS = {
    TaskState.PROCESSED: StatusKind.COMPLETED,
    TaskState.UNDOING: StatusKind.UNDOING,
    TaskState.UNDONE: StatusKind.UNDONE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FinalFailure:
    """Why a step goes to error, and how many failures this adds to its count.

    `resolve_within` is the number of seconds after which its task is undone unless it was resolved;
    `incident` is where the failure was counted, if it was.
    """

    step: int
    code: str
    message: str
    attempt: int
    failures: int = 0
    resolve_within: float | None = None
    incident: int | None = None


def to_error(
    final_failures: Sequence[tuple[FinalFailure, UUID, str, StepView]], *, by: str
) -> None:
    """Set steps to error, each with an open alert: processing, waiting or pending → error.

    Each failure comes with its task's id and workflow, and its step. The caller holds the locks of
    the tasks, and calls `settle` afterwards.
    """
    if not final_failures:
        return
    counted = _count_uncounted(final_failures, by=by)
    alert_ids = alerts.raise_for_steps(
        [
            alerts.StepError(
                incident=incident,
                message=failure.message,
                settles_itself=failure.resolve_within is not None,
            )
            for incident, (failure, *_) in zip(counted, final_failures, strict=True)
        ]
    )
    written = sql.run(
        TO_ERROR,
        {
            **attempts(step for *_, step in final_failures),
            "codes": [failure.code[:100] for failure, *_ in final_failures],
            "messages": [failure.message for failure, *_ in final_failures],
            "alerts": alert_ids,
            "incidents": counted,
            "failures": [failure.failures for failure, *_ in final_failures],
            "resolve_within": [failure.resolve_within for failure, *_ in final_failures],
        },
    )
    require(written, final_failures)
    tallies.add_open_failures([failure.step for failure, *_ in final_failures])
    Event.objects.bulk_create(
        Event(
            task_id=task,
            step_id=failure.step,
            kind=EventKind.ERROR,
            actor=by,
            attempt=failure.attempt,
            reason=in_a_line(failure),
        )
        for failure, task, *_ in final_failures
    )
    operation_items.failed(
        [(failure.step, task, in_a_line(failure)) for failure, task, *_ in final_failures]
    )


def _count_uncounted(
    final_failures: Sequence[tuple[FinalFailure, UUID, str, StepView]], *, by: str
) -> list[int]:
    """Return the incident of each failure; a failure without an attempt is counted here."""
    uncounted = [one for one in final_failures if one[0].incident is None]
    failures = [
        StepFailure(
            step=failure.step,
            cause=cause_of(step, workflow, "", failure.code, failure.message),
            message=failure.message,
        )
        for failure, _, workflow, step in uncounted
    ]
    found = iter(tallies.count_failures(failures, by=by))
    return [one[0].incident or next(found) for one in final_failures]


def cause_of(step: StepView, workflow: str, outcome: str, code: str, message: str) -> Cause:
    """Return the cause that a failure shares with others: its fingerprint makes the incident."""
    return Cause(
        workflow=workflow,
        step=step.name,
        direction=step.direction,
        agent=step.agent,
        outcome=outcome,
        code=code[:100],
        message=normalise(message),
    )


def in_a_line(failure: FinalFailure) -> str:
    """Return the code and the message of a failure in one line."""
    return f"{failure.code}: {failure.message}".strip(": ")


def settle(
    tasks: Mapping[UUID, tuple[str, Sequence[StepView], bool]],
    earlier_updates: Sequence[StatusUpdate] = (),
    final_failures: Mapping[UUID, Sequence[FinalFailure]] = {},
    *,
    followed: Collection[UUID],
    kept: Collection[UUID] = (),
) -> set[str]:
    """Write the state of each task that its steps' states change; return the applications to notify.

    `tasks` maps ids to the task's current state, all its steps, and whether it is being undone.
    `earlier_updates` are sent before the updates of tasks; `final_failures` are why tasks go to error.
    `followed` are the tasks that an application hears of, and `kept` those with an owner, which is notified
    of other changes, too.
    """
    changed: dict[UUID, tuple[str, TaskState]] = {}
    updates = list(earlier_updates)
    for task, (current, steps, undoing) in tasks.items():
        state = task_state(current, steps, undoing=undoing)
        if state == current:
            continue
        changed[task] = current, state
        if state == TaskState.ERROR:
            updates.append(_failure(task, steps, final_failures.get(task, ())))
        elif state in STATUS_KINDS:
            updates.append(StatusUpdate(task=task, kind=STATUS_KINDS[state]))
        elif current == TaskState.ERROR:
            updates.append(StatusUpdate(task=task, kind=StatusKind.RESUMED))
    write_states(changed)
    return write([one for one in updates if one.task in followed], kept)


def write_states(changed: Mapping[UUID, tuple[str, TaskState]]) -> None:
    """Write the states of locked tasks: of each the one it was in, and the new one."""
    if not changed:
        return
    written = prepared.run(
        SETTLED,
        {
            "ids": [str(task) for task in changed],
            "before": [str(before) for before, _ in changed.values()],
            "states": [state.value for _, state in changed.values()],
            "final": [state in FINAL_TASK_STATES for _, state in changed.values()],
        },
    )
    require(written, changed)


def _failure(
    task: UUID, steps: Sequence[StepView], final_failures: Sequence[FinalFailure]
) -> StatusUpdate:
    """Return the update about a task in error: whether another input may help, and where it failed.

    The service's message is left out: it may contain anything.
    """
    failed = [step for step in steps if step.state == StepState.ERROR]
    codes = {failure.step: failure.code for failure in final_failures}
    # while it may have been done, its input cannot be changed
    rejected = all(
        step.outcome == Outcome.REJECTED and step.direction == Direction.DO and not step.in_doubt
        for step in failed
    )
    return StatusUpdate(
        task=task,
        kind=StatusKind.ACTION_NEEDED if rejected else StatusKind.FAILED,
        detail={
            "steps": [
                {"step": step.name, "direction": step.direction, "code": codes.get(step.id, "")}
                for step in failed
            ]
        },
    )
