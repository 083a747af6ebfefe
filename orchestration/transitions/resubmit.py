"""Resubmit a step in error, or mark it as done by hand (P25)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from ..agents import payload_schemas
from ..alerting import alerts
from ..database import sql
from ..decisions.progress import Refusal, StepView
from ..decisions.readiness import build
from ..decisions.recovery import KEY_FORGOTTEN, KEYS, keeps_key, key_of_resubmission
from ..incidents import tallies
from ..models import Event, Step
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..payloads.keys import step_key
from ..payloads.placeholders import Loads, at
from ..states import Direction, StepState
from .amendments import NOTHING, Amendment, amend
from .late_effects import close_undone
from .locked_task import Change, cancel, finish, lock, note
from .turns import rejoin
from .undo_requests import take_back
from .versions import attempts, require, version

# As many steps as there are ids: error → pending.
RESUBMIT = """
UPDATE orchestration_step s SET
    process_state = 'pending', failure_count = 0, extended_waits = 0, isolated = false, alert_id = NULL,
    ended_at = NULL, failed_at = NULL, own_trouble = false,
    generation = s.generation + r.new_key::int, in_doubt = s.in_doubt AND NOT r.new_key,
    keyed_at = CASE WHEN r.new_key THEN NULL ELSE s.keyed_at END, probing_outcome = r.probing_outcome,
    request = r.request, loads = nullif(r.loads, 'null'), pending_since = clock_timestamp(),
    resolve_by = NULL,
    run_after = CASE WHEN %(wait)s > 0 THEN clock_timestamp() + %(wait)s * interval '1 second' END,
    patience = CASE WHEN %(patience)s > 0 THEN jsonb_build_object('code', s.error_code,
        'wait', %(wait)s, 'until', clock_timestamp() + %(patience)s * interval '1 second') END
FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(generations)s::int[], %(new_key)s::bool[],
    %(probing_outcome)s::bool[], %(requests)s::jsonb[], %(loads)s::jsonb[])
    AS r (id, attempt, generation, new_key, probing_outcome, request, loads)
WHERE s.id = r.id AND s.process_state = 'error'
    AND (s.attempt, s.generation) = (r.attempt, r.generation)
RETURNING s.id
"""


@dataclass(frozen=True, kw_only=True)
class PlannedRetry:
    """A step in error, its task locked, that is to be tried again, with the request it will send."""

    change: Change
    view: StepView
    step: Step
    request: Mapping[str, Any]
    changed: bool
    why: str

    @property
    def loads(self) -> Loads | None:
        """Return what is loaded for it still: not what was typed in instead."""
        loads = self.step.loads or ()
        return [(where, path) for where, path in loads if at(self.request, where) is None] or None

    @property
    def new_key(self) -> bool:
        """Return whether the key's generation rises."""
        return not keeps_key(self.why)


@transaction.atomic
def resubmit(  # noqa: PLR0913 - which, who and why, and what changes
    step_id: int,
    *,
    attempt: int,
    actor: str,
    reason: str,
    request: dict[str, Any] | None = None,
    nothing_done: bool = False,
    amendment: Amendment = NOTHING,
    operation: int | None = None,
) -> Refusal | None:
    """Make a step in error pending again; return why not, or None when it was done.

    `attempt` is the one the operator saw fail: if the step was resubmitted since, even if it has
    failed again, the operator must decide again. `request` changes its input: raises `schemas.Invalid`
    if its action does not accept that. `nothing_done`: the operator confirms that the last attempts
    had no effect. The key's generation rises only if that is certain, by such a confirmation or a
    definite rejection; after any other failure the effect may have happened, and only the same key
    shows whether it did. `amendment` is what an application changes, by name. `operation` is kept in the
    history.
    """
    locked = _lock_in_error(step_id, attempt)
    if isinstance(locked, Refusal):
        return locked
    change, view, step = locked
    if nothing_done and change.undoing and step.direction == Direction.DO:
        return _cancel(change, view, step, actor=actor, reason=reason, operation=operation)
    if amendment.request and request is None:
        request = {**step.request, **amendment.request}
    again = _decide(change, view, step, request=request, nothing_done=nothing_done)
    if isinstance(again, Refusal):
        return again
    amend(change, amendment.data)
    _write([again], actor=actor, reason=reason, amendment=amendment, operation=operation)
    return None


@transaction.atomic
def resubmit_all(
    seen: Mapping[int, int], *, actor: str, reason: str, operation: int
) -> dict[int, Refusal | None]:
    """Make steps in error pending again as they are, each if it is at the attempt that was `seen`.

    Returns, for each step, why not, or None when it was done. `operation` is kept in the history.
    """
    answers: dict[int, Refusal | None] = dict.fromkeys(seen, Refusal.NO_SUCH_STEP)
    steps = Step.objects.filter(id__in=seen)
    changes = lock(set(steps.values_list("task_id", flat=True)))
    accepted: list[PlannedRetry] = []
    for step in steps.order_by("id"):
        change = changes[step.task_id]
        refusal = _refusal(step, seen[step.id])
        again = refusal or _decide(change, change.steps[step.id], step)
        answers[step.id] = again if isinstance(again, Refusal) else None
        if isinstance(again, PlannedRetry):
            accepted.append(again)
    _write(accepted, actor=actor, reason=reason, operation=operation)
    return answers


def _decide(
    change: Change,
    view: StepView,
    step: Step,
    *,
    request: dict[str, Any] | None = None,
    nothing_done: bool = False,
) -> PlannedRetry | Refusal:
    """Return how a step in error is tried again, or why it cannot be."""
    doubt = step.in_doubt and not nothing_done
    if doubt and step.error_code == KEY_FORGOTTEN:
        return Refusal.KEY_FORGOTTEN
    changed = request is not None and request != step.request
    if doubt and changed:
        return Refusal.IN_DOUBT
    payload: Mapping[str, Any] = step.request
    if changed and request is not None:
        payload_schemas.check(step, request)
        payload = request
    elif step.attempt == 0:
        built = build(view, change.steps.values(), change.data)
        if built is None:
            return Refusal.NOT_BUILDABLE
        payload = built
    why = key_of_resubmission(
        step.outcome, step.attempt, in_doubt=doubt, changed=changed, nothing_done=nothing_done
    )
    return PlannedRetry(
        change=change, view=view, step=step, request=payload, changed=changed, why=why
    )


def _write(
    steps: Sequence[PlannedRetry],
    *,
    actor: str,
    reason: str,
    amendment: Amendment = NOTHING,
    operation: int | None = None,
) -> None:
    """Write resubmissions, their history, and what follows for their tasks: error → pending.

    Of the `amendment`, that is when they are tried.
    """
    if not steps:
        return
    tallies.remove_open_failures([again.step.id for again in steps], retried_by=actor)
    take_back([again.step.id for again in steps])
    rejoin([again.step.id for again in steps])
    written = sql.run(
        RESUBMIT,
        {
            **attempts(again.view for again in steps),
            "wait": amendment.wait,
            "patience": amendment.patience,
            "new_key": [again.new_key for again in steps],
            "probing_outcome": [_settles(again) for again in steps],
            "requests": sql.as_json([again.request for again in steps]),
            "loads": sql.as_json([again.loads for again in steps]),
        },
    )
    require(written, steps)
    Event.objects.bulk_create(_event(again, actor, reason, operation) for again in steps)
    for again in steps:
        generation = again.view.generation + again.new_key
        again.change.moved(
            again.view.altered(
                state=StepState.PENDING, generation=generation, request=again.request
            )
        )
    finish({again.change.id: again.change for again in steps}.values(), by=actor)
    alerts.close_if_unused({again.step.alert_id for again in steps})


def _settles(again: PlannedRetry) -> bool:
    """Return whether a step runs only to learn whether it was done: its task is being undone."""
    undoing = again.change.undoing and again.step.direction == Direction.DO
    return undoing and again.step.in_doubt and not again.new_key


def _event(again: PlannedRetry, actor: str, reason: str, operation: int | None) -> Event:
    step = again.step
    generation = step.generation + again.new_key
    detail: dict[str, Any] = {
        "key": step_key(step.task_id, step.name, step.direction, generation),
        "new_key": again.new_key,
        "why": KEYS[again.why],
    }
    if again.changed:
        detail |= {"before": step.request, "after": again.request}
    return note(
        again.change, again.view, EventKind.RESUBMITTED, by=actor, reason=reason,
        operation=operation, **detail,
    )  # fmt: skip


@transaction.atomic
def done_by_hand(
    step_id: int,
    *,
    attempt: int,
    actor: str,
    reason: str,
    result: dict[str, Any],
    operation: int | None = None,
) -> Refusal | None:
    """Mark a step in error as done by an operator: error → skipped; its successors go on.

    `result` is what the service would have answered; raises `schemas.Invalid` if it is not that.
    `operation` is kept in the history.
    """
    locked = _lock_in_error(step_id, attempt)
    if isinstance(locked, Refusal):
        return locked
    change, view, step = locked
    computed = change.workflow, step.name
    payload_schemas.check_result(step.agent, step.action, result, computed=computed)
    tallies.remove_open_failures([step.id])
    marked = Step.objects.filter(**version(view, StepState.ERROR)).update(
        process_state=StepState.SKIPPED, result=result, alert=None, resolve_by=None, in_doubt=False,
        probing_outcome=False, ended_at=DatabaseNow(), loaded=None,
    )  # fmt: skip
    require(marked, 1)
    event = note(
        change, view, EventKind.BY_HAND, by=actor, reason=reason, operation=operation, result=result
    )
    skipped = view.altered(state=StepState.SKIPPED, result=result, in_doubt=False)
    _end(change, step, skipped, event)
    if step.direction == Direction.UNDO:
        close_undone([(skipped, change)])
    return None


def _cancel(
    change: Change,
    view: StepView,
    step: Step,
    *,
    actor: str,
    reason: str,
    operation: int | None,
) -> Refusal | None:
    """Cancel a step of a task being undone: an operator confirmed that it had no effect."""
    tallies.remove_open_failures([step.id])
    cancel([view])
    event = note(change, view, EventKind.SETTLED, by=actor, reason=reason, operation=operation)
    _end(change, step, view.altered(state=StepState.CANCELLED, in_doubt=False), event)
    return None


def _end(change: Change, step: Step, ended: StepView, event: Event) -> None:
    """Write the history of a step that was in error, and what follows from its end."""
    event.save()
    change.moved(ended)
    finish([change], by=event.actor)
    alerts.close_if_unused([step.alert_id])


def _lock_in_error(step_id: int, attempt: int) -> tuple[Change, StepView, Step] | Refusal:
    task = Step.objects.filter(id=step_id).values_list("task_id", flat=True).first()
    change = lock([task]).get(task) if task else None
    if change is None:
        return Refusal.NO_SUCH_STEP
    step = Step.objects.get(id=step_id)
    return _refusal(step, attempt) or (change, change.steps[step_id], step)


def _refusal(step: Step, attempt: int) -> Refusal | None:
    """Return why a locked step is not what the operator saw, or None when it is."""
    if step.process_state != StepState.ERROR:
        return Refusal.NOT_IN_ERROR
    return None if step.attempt == attempt else Refusal.OTHER_ATTEMPT
