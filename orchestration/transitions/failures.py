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
from ..decisions.recovery import Failure, Retry, Undo
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
from .undo_requests import WAIT, request

# Both parts see the step as it was before. It is in doubt from then on, regardless of the decision.
EXPIRED = """
WITH history AS (
    INSERT INTO orchestration_attempt (step_id, number, generation, scheduler, agent,
        dispatched_at, ended_at, outcome, tries, error_code, error_message)
    SELECT id, attempt, generation, locked_by, '', dispatched_at, clock_timestamp(), 'expired', 0,
        'expired', %(message)s
    FROM orchestration_step WHERE id = ANY(%(ids)s)
)
UPDATE orchestration_step SET locked_by = NULL, in_doubt = true, outcome = 'expired',
    error_code = 'expired', error_message = %(message)s
WHERE id = ANY(%(ids)s)
"""

RETRY = """
UPDATE orchestration_step s SET
    process_state = 'pending', locked_by = NULL, complete_by = NULL,
    failure_count = r.failure_count, extended_waits = r.extended_waits, outcome = r.outcome,
    error_code = r.code, error_message = r.message, pending_since = clock_timestamp(),
    in_doubt = r.in_doubt AND NOT r.new_key, probing_outcome = s.probing_outcome OR r.probing_outcome,
    generation = s.generation + r.new_key::int,
    keyed_at = CASE WHEN r.new_key THEN NULL ELSE s.keyed_at END, isolated = r.isolated,
    run_after = clock_timestamp() + r.wait * interval '1 second', retry_after = NULL,
    failed_at = CASE WHEN r.outcome <> 'absent' THEN clock_timestamp() END, own_trouble = r.own_trouble,
    incident_id = coalesce(r.incident, s.incident_id)
FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(counts)s::int[], %(extended_waits)s::int[],
    %(waits)s::float8[], %(outcomes)s::text[], %(codes)s::text[], %(messages)s::text[],
    %(in_doubt)s::bool[], %(new_key)s::bool[], %(probing_outcome)s::bool[], %(isolated)s::bool[],
    %(incidents)s::bigint[], %(own_trouble)s::bool[])
    AS r (id, attempt, failure_count, extended_waits, wait, outcome, code, message, in_doubt, new_key,
        probing_outcome, isolated, incident, own_trouble)
WHERE s.id = r.id AND s.attempt = r.attempt AND s.process_state = 'processing'
"""

# Steps that go neither to error nor round again.
BLAMED = """
UPDATE orchestration_step s SET incident_id = b.incident
FROM unnest(%(ids)s::bigint[], %(incidents)s::bigint[]) AS b (id, incident) WHERE s.id = b.id
"""

# Along step_retry, and no waiting for those that others have locked. What has a trouble of its own goes
# last, unless its task waits for it to be undone, or its service might forget its key meanwhile.
DUE_AGAIN = """
SELECT s.id, s.own_trouble AND s.direction = 'do' AND NOT s.probing_outcome
        AND NOT (s.in_doubt AND coalesce(
            s.keyed_at + p.key_memory / 2 * interval '1 second' < (SELECT clock_timestamp()), false)),
    s.agent, s.priority, s.fairness_key
FROM orchestration_step s LEFT JOIN orchestration_policy p ON p.agent = s.agent
WHERE s.process_state = 'pending' AND s.run_after <= (SELECT clock_timestamp())
ORDER BY s.run_after LIMIT %(limit)s FOR NO KEY UPDATE OF s SKIP LOCKED
"""

WAKE = """
UPDATE orchestration_step s SET run_after = NULL, pending_since = clock_timestamp(), turn = w.turn
FROM unnest(%(ids)s::bigint[], %(turns)s::bigint[]) AS w (id, turn) WHERE s.id = w.id
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
    silent = [step.view.id for step in failed if step.silent]
    if silent:
        sql.run(EXPIRED, {"ids": silent, "message": NO_REPLY})
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
    blamed = [(step.view.id, step.incident) for step in steps if step.incident is not None]
    if blamed:
        ids, causes = (list(column) for column in zip(*blamed, strict=True))
        sql.run(BLAMED, {"ids": ids, "incidents": causes})


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


def retry(steps: Sequence[tuple[Failed, Retry]], *, by: str) -> None:
    """Make failed steps pending again, as decided."""
    _make_pending(steps)
    events = [_retried(step, again, by) for step, again in steps]
    Event.objects.bulk_create(events)
    reports.retried([(step.change, step.view) for step, _ in steps], events)


def ask_to_undo(steps: Sequence[tuple[Failed, Undo]], *, by: str) -> None:
    """Ask that the tasks of failed steps be undone; the steps wait until a scheduler begins that."""
    _make_pending(
        [(step, Retry(failure_count=undo.failure_count, wait=WAIT)) for step, undo in steps]
    )
    request([(step.change, step.view, _why(step, undo)) for step, undo in steps], by=by)


def _why(step: Failed, undo: Undo) -> str:
    what = step.failure.code or step.failure.outcome
    return f"{step.view.name} failed {undo.failure_count} times ({what})"


def _make_pending(steps: Sequence[tuple[Failed, Retry]]) -> None:
    if not steps:
        return
    sql.run(
        RETRY,
        {
            "ids": [step.view.id for step, _ in steps],
            "attempts": [step.view.attempt for step, _ in steps],
            "counts": [again.failure_count for _, again in steps],
            "extended_waits": [again.extended_waits for _, again in steps],
            "waits": [again.wait for _, again in steps],
            "outcomes": [step.view.outcome for step, _ in steps],
            "codes": [step.failure.code for step, _ in steps],
            "messages": [step.message for step, _ in steps],
            "in_doubt": [step.view.in_doubt for step, _ in steps],
            "new_key": [again.new_key for _, again in steps],
            "probing_outcome": [
                step.change.undoing and step.failure.direction == "do" for step, _ in steps
            ],
            "isolated": [again.isolated for _, again in steps],
            "incidents": [step.incident for step, _ in steps],
            "own_trouble": [step.view.own_trouble for step, _ in steps],
        },
    )
    for step, _ in steps:
        step.change.moved(step.view.altered(state=StepState.PENDING))


def _retried(step: Failed, again: Retry, by: str) -> Event:
    what = step.failure.code or step.failure.outcome
    if again.extended:
        kind = EventKind.WAITS
        reason = f"extended wait {again.extended_waits}: again in {again.wait:.0f} s"
    elif again.new_key:
        kind, reason = EventKind.SETTLED, "the service knows of no effect: again, with a new key"
    elif not again.counted:
        kind, reason = EventKind.EXCUSED, f"{what}: again in {again.wait:.1f} s"
    else:
        kind = EventKind.RETRY
        reason = f"failure {again.failure_count} ({what}): again in {again.wait:.1f} s"
    return note(step.change, step.view, kind, by=by, reason=reason)


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
    cancel([step.view.id for step in steps])
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
        turns = next_turns([Arrival(Line(*line), again=not last) for _, last, *line in due])
        sql.run(WAKE, {"ids": [step for step, *_ in due], "turns": turns})
    return len(due)
