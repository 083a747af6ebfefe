"""Retry failed and expired steps, or set them to error (P10, P11, P26)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from ..database import sql
from ..decisions.fairness import Arrival, Line
from ..decisions.progress import StepView
from ..decisions.recovery import Failure
from ..incidents import tallies
from ..incidents.fingerprint import Cause
from ..models import DeadLetter, Event, Step
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..models.low_water import deadline
from ..states import Outcome, StepState
from . import clock_jump, reports
from .locked_task import Change, Consequences, cancel, finish, lock, note, tasks_of
from .task_state import FinalFailure, cause_of
from .turns import next_turns
from .versions import AS_DECIDED, attempts, columns, require

# Both parts see the step as it was before. It is in doubt from then on, regardless of the decision.
EXPIRED = f"""
WITH history AS (
    INSERT INTO orchestration_attempt (step_id, number, generation, scheduler, agent,
        dispatched_at, ended_at, outcome, tries, error_code, error_message)
    SELECT id, attempt, generation, locked_by, '', dispatched_at, clock_timestamp(), 'expired', 0,
        'expired', %(message)s
    FROM orchestration_step WHERE id = ANY(%(ids)s)
)
UPDATE orchestration_step s SET locked_by = NULL, in_doubt = true, outcome = 'expired',
    error_code = 'expired', error_message = %(message)s
{AS_DECIDED}
    AND s.process_state = 'processing' AND s.locked_by IS NOT NULL
RETURNING s.id
"""  # noqa: S608 - a constant of our own

# Steps that go neither to error nor round again.
BLAMED = """
UPDATE orchestration_step s SET incident_id = b.incident
FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(generations)s::int[], %(incidents)s::bigint[])
    AS b (id, attempt, generation, incident)
WHERE s.id = b.id AND s.process_state = 'processing'
    AND (s.attempt, s.generation) = (b.attempt, b.generation)
RETURNING s.id
"""

# Along step_retry, and no waiting for those that others have locked. What has a trouble of its own goes
# last, unless its task waits for it to be undone, or its service might forget its key meanwhile.
DUE_AGAIN = """
SELECT s.id, s.process_state, s.attempt, s.generation,
    s.own_trouble AND s.direction = 'do' AND NOT s.probing_outcome
        AND NOT (s.in_doubt AND coalesce(
            s.keyed_at + p.key_memory / 2 * interval '1 second' < (SELECT clock_timestamp()), false)),
    s.agent, s.priority, s.fairness_key
FROM orchestration_step s LEFT JOIN orchestration_policy p ON p.agent = s.agent
WHERE s.process_state = 'pending' AND s.run_after <= (SELECT clock_timestamp())
ORDER BY s.run_after LIMIT %(limit)s FOR NO KEY UPDATE OF s SKIP LOCKED
"""

WAKE = """
UPDATE orchestration_step s SET run_after = NULL, pending_since = clock_timestamp(), turn = w.turn
FROM unnest(%(ids)s::bigint[], %(states)s::text[], %(attempts)s::int[], %(generations)s::int[],
    %(turns)s::bigint[]) AS w (id, state, attempt, generation, turn)
WHERE s.id = w.id
    AND (s.process_state, s.attempt, s.generation) = (w.state, w.attempt, w.generation)
RETURNING s.id
"""

NO_REPLY = "no reply came before its deadline: the agent died, hung, or is slow"


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A step whose attempt failed or expired; its task is locked.

    `failed_at` is when it failed before, in Unix time, since it was last resubmitted.
    `incident` is where it was counted: everywhere but where it was only asked, and none was done.
    """

    change: Change
    view: StepView
    failure: Failure
    message: str
    silent: bool
    failed_at: float | None
    incident: int | None = None

    @property
    def agent(self) -> str:
        """Return the agent that was asked."""
        return self.view.agent

    @cached_property
    def cause(self) -> Cause:
        """Return why it failed, as far as others failed by the same."""
        failure = self.failure
        return cause_of(
            self.view, self.change.workflow, failure.outcome, failure.code, self.message
        )


def _failed(now: datetime, silent_since: datetime | None) -> QuerySet[Step]:
    """Return what has failed at `now`, and still has if the clock has gone back since.

    Attempts without a reply must have ended by `silent_since`, if that is earlier.
    """
    failed = Step.objects.filter(
        process_state=StepState.PROCESSING, complete_by__gte=deadline(), complete_by__lte=now
    )
    if silent_since is not None:
        failed = failed.filter(Q(locked_by=None) | Q(complete_by__lte=silent_since))
    return clock_jump.due(failed.filter(complete_by__lte=DatabaseNow()), "complete_by")


def failed_tasks(
    limit: int,
    excluded: Collection[UUID] = (),
    *,
    now: datetime,
    silent_since: datetime | None = None,
) -> list[UUID]:
    """Return the tasks of `limit` steps whose complete-by has passed, oldest first, except `excluded`.

    `now` is the leader's verified time: a failure may be the one after which a task is undone. Those
    without a reply must have ended by `silent_since`.
    """
    return tasks_of(_failed(now, silent_since).order_by("complete_by"), limit, excluded)


def lock_failed(
    tasks: Collection[UUID], *, by: str, now: datetime, silent_since: datetime | None = None
) -> list[Failed]:
    """Lock tasks, and return their steps that `failed_tasks` looks for.

    Skips what others have locked, be it the task, or the incident or alert of a failure's cause, and
    attempts whose reply was put off for such a lock: a later sweep finds them. Writes the history
    of attempts that ended in silence, and counts each failure to the incident of its cause.
    """
    changes = lock(tasks, wait=False)
    steps = list(_failed(now, silent_since).filter(task__in=changes).order_by("id"))
    letters = DeadLetter.objects.filter(step__in=[step.id for step in steps])
    put_off = set(letters.values_list("step", flat=True))
    failed = [_as_failed(step, changes[step.task_id]) for step in steps if step.id not in put_off]
    waiting = tallies.lock([step.cause for step in failed])
    failed = [step for step in failed if step.cause.fingerprint not in waiting]
    silent = [step.view for step in failed if step.silent]
    if silent:
        require(sql.run(EXPIRED, {**attempts(silent), "message": NO_REPLY}), silent)
        reports.attempts((None, step.view, step.change) for step in failed if step.silent)
    return _counted(failed, by=by)


def _counted(steps: Sequence[Failed], *, by: str) -> list[Failed]:
    failures = {
        step.view.id: tallies.StepFailure(step=step.view.id, cause=step.cause, message=step.message)
        for step in steps
        if step.failure.outcome != Outcome.ABSENT
    }
    counted = tallies.count_failures(list(failures.values()), by=by)
    incidents = dict(zip(failures, counted, strict=True))
    return [replace(step, incident=incidents.get(step.view.id)) for step in steps]


def _blame(steps: Iterable[Failed]) -> None:
    """Note the incident of steps that go neither to error nor round again."""
    blamed = [step for step in steps if step.incident is not None]
    if blamed:
        values = {"incidents": [step.incident for step in blamed]}
        require(sql.run(BLAMED, {**attempts(step.view for step in blamed), **values}), blamed)


def _as_failed(step: Step, change: Change) -> Failed:
    silent = step.locked_by is not None
    view = change.steps[step.id].altered(
        locked_by=None,
        in_doubt=step.in_doubt or silent,
        outcome=Outcome.EXPIRED if silent else step.outcome,
    )
    change.moved(view)
    return Failed(
        change=change,
        view=view,
        failure=Failure(
            failure_count=step.failure_count,
            extended_waits=step.extended_waits,
            outcome=view.outcome,
            code="expired" if silent else step.error_code,
            direction=step.direction,
            undoing=change.undoing,
            in_doubt=view.in_doubt,
            put_off=0.0 if silent else step.retry_after or 0.0,
        ),
        message=NO_REPLY if silent else step.error_message,
        silent=silent,
        failed_at=step.failed_at.timestamp() if step.failed_at else None,
    )


def give_up(steps: Iterable[Failed], *, kept: Collection[int]) -> None:
    """Note that steps failed past their threshold: error, with an alert, when their tasks finish.

    The tasks of those that a hold has `kept` from it are undone after its end.
    """
    for step in steps:
        step.change.moved(step.view.altered(state=StepState.ERROR))
        step.change.final_failures.append(
            FinalFailure(
                step=step.view.id,
                code=step.failure.code or step.failure.outcome,
                message=f"{step.message} (failed {step.failure.failure_count + 1} times)".strip(),
                attempt=step.view.attempt,
                failures=1,
                resolve_within=0.0 if step.view.id in kept else None,
                incident=step.incident,
            )
        )


def cancel_undone(steps: Sequence[Failed], *, by: str) -> None:
    """Cancel steps of tasks being undone that had no effect."""
    _blame(steps)
    cancel([step.view for step in steps])
    for step in steps:
        step.change.moved(step.view.altered(state=StepState.CANCELLED))
    Event.objects.bulk_create(
        note(step.change, step.view, EventKind.SETTLED, by=by, reason="nothing was done")
        for step in steps
    )


def finish_failed(failed: Sequence[Failed], *, by: str) -> Consequences:
    """Write what the decisions mean for the tasks."""
    return finish({step.change.id: step.change for step in failed}.values(), by=by)


@transaction.atomic
def wake(limit: int) -> int:
    """End the wait of retries whose time has come; return how many.

    They go next, but for those with a trouble of their own: these go behind all that wait now, as
    they are likely to fail once more.
    """
    due = sql.run(DUE_AGAIN, {"limit": limit})
    if due:
        lines = [(Line(*line), last) for _, _, _, _, last, *line in due]
        turns = next_turns([Arrival(line, again=not last) for line, last in lines])
        require(sql.run(WAKE, {**columns(due), "turns": turns}), due)
    return len(due)
