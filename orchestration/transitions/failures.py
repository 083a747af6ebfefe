"""Retry failed and expired steps, or set them to error (P10, P11, P26)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from ..database import sql
from ..decisions.fairness import Arrival
from ..decisions.progress import StepView
from ..decisions.recovery import Failure
from ..incidents import tallies
from ..incidents.fingerprint import Cause
from ..models import DeadLetter, Step
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..models.low_water import deadline
from ..policies import StepKey
from ..states import Outcome, StepState
from . import clock_jump, moves, reports
from .change import Change, FinalFailure
from .locked_task import lock, tasks_of
from .moves import NO_REPLY
from .settle import Consequences, finish
from .turns import StandingStep, next_turns

# Along step_retry, and no waiting for those that others have locked. What has a trouble of its own goes
# last, unless its task waits for it to be undone, or its service might forget its key meanwhile.
DUE_AGAIN = """
SELECT s.id, s.process_state, s.attempt, s.generation, s.agent, s.priority, s.fairness_key,
    s.own_trouble AND s.direction = 'do' AND NOT s.probing_outcome
        AND NOT (s.in_doubt AND coalesce(
            s.keyed_at + p.key_memory / 2 * interval '1 second' < (SELECT clock_timestamp()), false))
FROM orchestration_step s LEFT JOIN orchestration_policy p ON p.agent = s.agent
WHERE s.process_state = 'pending' AND s.run_after <= (SELECT clock_timestamp())
ORDER BY s.run_after LIMIT %(limit)s FOR NO KEY UPDATE OF s SKIP LOCKED
"""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A step whose attempt failed or expired; its task is locked.

    `failed_at` is when it failed before, in Unix time, since it was last resubmitted.
    """

    change: Change
    view: StepView
    failure: Failure
    message: str
    silent: bool
    failed_at: float | None

    @property
    def agent(self) -> str:
        """Return the agent that was asked."""
        return self.view.agent

    @property
    def key(self) -> StepKey:
        """Return what its thresholds are found by."""
        return StepKey(self.change.workflow, self.view.name, self.view.agent)

    @cached_property
    def cause(self) -> Cause:
        """Return why it failed, as far as others failed by the same."""
        failure = self.failure
        return self.change.cause(self.view, failure.outcome, failure.code, self.message)


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
    tasks: Collection[UUID], *, now: datetime, silent_since: datetime | None = None
) -> list[Failed]:
    """Lock tasks, and return their steps that `failed_tasks` looks for.

    Skips what others have locked, be it the task, or the incident or alert of a failure's cause, and
    attempts whose reply was put off for such a lock: a later sweep finds them. Attempts that ended in
    silence are to be written to the history, and each failure is to be counted.
    """
    changes = lock(tasks, wait=False)
    steps = list(_failed(now, silent_since).filter(task__in=changes).order_by("id"))
    letters = DeadLetter.objects.filter(step__in=[step.id for step in steps])
    put_off = set(letters.values_list("step", flat=True))
    failed = [_as_failed(step, changes[step.task_id]) for step in steps if step.id not in put_off]
    waiting = tallies.lock([step.cause for step in failed])
    failed = [step for step in failed if step.cause.fingerprint not in waiting]
    for step in failed:
        if step.silent:
            step.change.move(moves.EXPIRED, step.view)
        if step.failure.outcome != Outcome.ABSENT:  # else it was only asked
            step.change.count(step.view, step.cause, step.message)
    reports.attempts((None, step.view, step.change) for step in failed if step.silent)
    return failed


def _as_failed(step: Step, change: Change) -> Failed:
    silent = step.locked_by is not None
    view = change.steps[step.id].altered(
        locked_by=None,
        in_doubt=step.in_doubt or silent,
        outcome=Outcome.EXPIRED if silent else step.outcome,
    )
    return Failed(
        change=change,
        view=view,
        failure=Failure(
            failure_count=step.failure_count,
            extended_waits=step.extended_waits,
            outcome=view.outcome,
            code="expired" if silent else step.error_code,
            direction=step.direction,
            undoing=change.undoes(view),
            in_doubt=view.in_doubt,
            put_off=0.0 if silent else step.retry_after or 0.0,
        ),
        message=NO_REPLY if silent else step.error_message,
        silent=silent,
        failed_at=step.failed_at.timestamp() if step.failed_at else None,
    )


def give_up(steps: Iterable[Failed], *, held: Collection[int]) -> None:
    """Have steps that failed past their threshold go to error, with an alert.

    The tasks of those that a hold keeps from being undone are undone after its end.
    """
    for step in steps:
        step.change.fail(
            FinalFailure(
                step=step.view.id,
                code=step.failure.code or step.failure.outcome,
                message=f"{step.message} (failed {step.failure.failure_count + 1} times)".strip(),
                attempt=step.view.attempt,
                failures=1,
                resolve_within=0.0 if step.view.id in held else None,
            )
        )


def cancel_undone(steps: Iterable[Failed], *, by: str) -> None:
    """Cancel steps of tasks being undone that had no effect."""
    for step in steps:
        step.change.cancel(step.view)
        step.change.note(step.view, EventKind.SETTLED, by=by, reason="nothing was done")


def finish_failed(failed: Sequence[Failed], *, by: str) -> Consequences:
    """Write what the decisions mean for the tasks."""
    return finish({step.change.id: step.change for step in failed}.values(), by=by)


@transaction.atomic
def wake(limit: int) -> int:
    """End the wait of retries whose time has come; return how many.

    They go next, but for those with a trouble of their own: these go behind all that wait now, as
    they are likely to fail once more.
    """
    due = [(StandingStep._make(row), last) for *row, last in sql.run(DUE_AGAIN, {"limit": limit})]
    turns = next_turns([Arrival(step.line, again=not last) for step, last in due])
    moves.DUE.write([step for step, _ in due], turn=turns)
    return len(due)
