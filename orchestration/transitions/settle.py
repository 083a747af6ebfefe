"""What a change of steps means for their task: error, processed, or on with it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from .. import alerts, incidents, sql
from ..fingerprint import Cause, normalise
from ..incidents import Failure
from ..models import Event
from ..models.history import EventKind
from ..models.inbox import StatusKind
from ..news import News, write
from ..progression import StepView, task_state
from ..states import FINAL_TASK_STATES, Direction, Outcome, StepState, TaskState
from . import followed

TO_ERROR = """
UPDATE orchestration_step s SET
    process_state = 'error', locked_by = NULL, complete_by = NULL, run_after = NULL,
    ended_at = clock_timestamp(), error_code = e.code, error_message = e.message,
    alert_id = e.alert, incident_id = e.incident, failure_count = s.failure_count + e.failures,
    mend_by = clock_timestamp() + e.mend_within * interval '1 second'
FROM unnest(%(ids)s::bigint[], %(codes)s::text[], %(messages)s::text[], %(alerts)s::bigint[],
    %(incidents)s::bigint[], %(failures)s::int[], %(mend_within)s::float8[])
    AS e (id, code, message, alert, incident, failures, mend_within)
WHERE s.id = e.id AND s.process_state IN ('processing', 'waiting', 'pending')
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
    TaskState.UNDOING: StatusKind.UNDOING,
    TaskState.UNDONE: StatusKind.UNDONE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """A step that ends in error: why, and how many failures this adds to its count.

    `mend_within` are the seconds after which its task is undone, unless somebody mends it;
    `incident` is where its failure was counted, if it was.
    """

    step: int
    code: str
    message: str
    attempt: int
    failures: int = 0
    mend_within: float | None = None
    incident: int | None = None


def to_error(troubles: Sequence[tuple[Trouble, UUID, str, StepView]], *, by: str) -> None:
    """Set steps to error, each with an open alert: processing, waiting or pending → error.

    Each trouble comes with its task's id and workflow, and its step. The caller holds the locks of
    the tasks, and settles them afterwards.
    """
    if not troubles:
        return
    counted = _count_uncounted(troubles, by=by)
    alert_ids = alerts.raise_for_steps(
        [
            alerts.StepError(
                incident=incident,
                message=trouble.message,
                settles_itself=trouble.mend_within is not None,
            )
            for incident, (trouble, *_) in zip(counted, troubles, strict=True)
        ]
    )
    sql.run(
        TO_ERROR,
        {
            "ids": [trouble.step for trouble, *_ in troubles],
            "codes": [trouble.code[:100] for trouble, *_ in troubles],
            "messages": [trouble.message for trouble, *_ in troubles],
            "alerts": alert_ids,
            "incidents": counted,
            "failures": [trouble.failures for trouble, *_ in troubles],
            "mend_within": [trouble.mend_within for trouble, *_ in troubles],
        },
    )
    incidents.suffer([trouble.step for trouble, *_ in troubles])
    Event.objects.bulk_create(
        Event(
            task_id=task,
            step_id=trouble.step,
            kind=EventKind.ERROR,
            actor=by,
            attempt=trouble.attempt,
            reason=said(trouble),
        )
        for trouble, task, *_ in troubles
    )
    followed.failed([(trouble.step, task, said(trouble)) for trouble, task, *_ in troubles])


def _count_uncounted(
    troubles: Sequence[tuple[Trouble, UUID, str, StepView]], *, by: str
) -> list[int]:
    """Return the incident of each trouble; those that no attempt came before are counted here."""
    uncounted = [one for one in troubles if one[0].incident is None]
    failures = [
        Failure(
            step=trouble.step,
            cause=cause_of(step, workflow, "", trouble.code, trouble.message),
            message=trouble.message,
        )
        for trouble, _, workflow, step in uncounted
    ]
    found = iter(incidents.count(failures, by=by))
    return [one[0].incident or next(found) for one in troubles]


def cause_of(step: StepView, workflow: str, outcome: str, code: str, message: str) -> Cause:
    """Return why a step failed, as far as others failed by the same."""
    return Cause(
        workflow=workflow,
        step=step.name,
        direction=step.direction,
        agent=step.agent,
        outcome=outcome,
        code=code[:100],
        message=normalise(message),
    )


def said(trouble: Trouble) -> str:
    """Return what went wrong, in a line."""
    return f"{trouble.code}: {trouble.message}".strip(": ")


def settle(
    tasks: Mapping[UUID, tuple[str, Sequence[StepView], bool]],
    news: Sequence[News] = (),
    troubles: Mapping[UUID, Sequence[Trouble]] = {},
    *,
    kept: Collection[UUID] = (),
) -> set[str]:
    """Write each task's state where its steps' states change it; return the applications told.

    `tasks` maps ids to the task's current state, all its steps, and whether it is being undone.
    `news` of single steps is told before; `troubles` are those that tasks go to error for. `kept` are
    the tasks that have a keeper, which is told what else has changed, too.
    """
    changed: dict[UUID, TaskState] = {}
    told = list(news)
    for task, (current, steps, undoing) in tasks.items():
        state = task_state(current, steps, undoing=undoing)
        if state == current:
            continue
        changed[task] = state
        if state == TaskState.ERROR:
            told.append(_failure(task, steps, troubles.get(task, ())))
        elif state in TOLD:
            told.append(News(task=task, kind=TOLD[state]))
        elif current == TaskState.ERROR:
            told.append(News(task=task, kind=StatusKind.RESUMED))
    write_states(changed)
    return write(told, kept)


def write_states(changed: Mapping[UUID, TaskState]) -> None:
    """Write new states of locked tasks."""
    if not changed:
        return
    sql.run(
        SETTLED,
        {
            "ids": [str(task) for task in changed],
            "states": [state.value for state in changed.values()],
            "final": [state in FINAL_TASK_STATES for state in changed.values()],
        },
    )


def _failure(task: UUID, steps: Sequence[StepView], troubles: Sequence[Trouble]) -> News:
    """Return what is told of a task in error: whether another input may mend it, and where it failed.

    What the service said stays with us: it may hold anything.
    """
    failed = [step for step in steps if step.state == StepState.ERROR]
    codes = {trouble.step: trouble.code for trouble in troubles}
    # while it may have been done, its input cannot be changed
    rejected = all(
        step.outcome == Outcome.REJECTED and step.direction == Direction.DO and not step.in_doubt
        for step in failed
    )
    return News(
        task=task,
        kind=StatusKind.ACTION_NEEDED if rejected else StatusKind.FAILED,
        detail={
            "steps": [
                {"step": step.name, "direction": step.direction, "code": codes.get(step.id, "")}
                for step in failed
            ]
        },
    )
