"""Resubmit a step in error, or mark it as done by hand (P25)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from ..agents import payload_schemas
from ..database import clock
from ..decisions.amendment import NOTHING, Amendment
from ..decisions.progress import Refusal, StepView
from ..decisions.readiness import INVALID_TIME, build
from ..decisions.recovery import KEY_FORGOTTEN, KEYS, keeps_key, key_of_resubmission
from ..models import Step
from ..models.history import EventKind
from ..payloads.keys import step_key
from ..payloads.placeholders import Loads, Unresolved, at
from ..states import Direction, StepState
from . import moves, waits
from .amendments import amend
from .change import Change
from .late_effects import close_undone
from .locked_task import lock
from .settle import finish
from .undo_requests import take_back
from .waits import NewTime, Until


@dataclass(frozen=True, kw_only=True)
class PlannedRetry:
    """A step in error, its task locked, that is to be tried again, with the request it will send."""

    change: Change
    step: StepView
    request: Mapping[str, Any]
    changed: bool
    why: str
    wait: float = 0.0  # seconds until its time comes

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
    change, step = locked
    if nothing_done and step.direction == Direction.DO and change.undoes(step):
        change.cancel(step)
        change.note(step, EventKind.SETTLED, by=actor, reason=reason, operation=operation)
        finish([change], by=actor)
        return None
    if amendment.request and request is None:
        request = {**step.request, **amendment.request}
    again = _decide(change, step, request=request, nothing_done=nothing_done)
    if isinstance(again, Refusal):
        return again
    with suppress(Unresolved):  # else it is this person who says when: now
        again = replace(again, wait=_until_its_time(change, step, amendment.data))
    if again.wait and step.flow and step.flow.is_awaited:
        return Refusal.TOO_EARLY
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
    tasks = dict(Step.objects.filter(id__in=seen).order_by("id").values_list("id", "task_id"))
    changes = lock(set(tasks.values()))
    accepted: list[PlannedRetry] = []
    for step_id, task in tasks.items():
        change = changes[task]
        step = change.steps[step_id]
        again = _refusal(step, seen[step_id]) or _untimed(change, step) or _decide(change, step)
        answers[step_id] = again if isinstance(again, Refusal) else None
        if isinstance(again, PlannedRetry):
            accepted.append(again)
    _write(accepted, actor=actor, reason=reason, operation=operation)
    return answers


def _decide(
    change: Change,
    step: StepView,
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
        built = build(step, change.steps.values(), change.data)
        if built is None:
            return Refusal.NOT_BUILDABLE
        payload = built
    why = key_of_resubmission(
        step.outcome, step.attempt, in_doubt=doubt, changed=changed, nothing_done=nothing_done
    )
    return PlannedRetry(change=change, step=step, request=payload, changed=changed, why=why)


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
    take_back([again.step.id for again in steps])
    for again in steps:
        change, step = again.change, again.step
        _note(again, actor, reason, operation)
        if step.flow is not None and step.flow.is_awaited:
            change.await_result(step, again.request, _until(change, step))
            continue
        generation = step.generation + again.new_key
        change.move(
            moves.RESUBMITTED,
            step.altered(state=StepState.PENDING, generation=generation, request=again.request),
            arrival=change.next_in_line(step),
            new_key=again.new_key,
            probing_outcome=_settles(again),
            request=again.request,
            loads=again.loads,
            wait=max(amendment.wait, again.wait),
            patience=amendment.patience,
        )
    finish({again.change.id: again.change for again in steps}.values(), by=actor)


def _untimed(change: Change, step: StepView) -> Refusal | None:
    """Return why a step is not tried again with others, if its time is not there; else None."""
    try:
        return Refusal.TOO_EARLY if _until_its_time(change, step, {}) else None
    except Unresolved:
        return Refusal.NO_TIME


def _until_its_time(change: Change, step: StepView, amended: Mapping[str, Any]) -> float:
    """Return the seconds to wait of a step whose time was not known; raise `Unresolved` if it is not."""
    if step.error_code != INVALID_TIME or step.attempt:
        return 0.0
    until = waits.begins_at(step, change.steps.values(), {**change.data, **amended})
    return NewTime(step, until).seconds if until else 0.0


def _until(change: Change, step: StepView) -> Until:
    """Return by when a step has to end that is awaited again: where that has passed, in the usual time."""
    until = waits.ends_by(step, change.steps.values(), change.data)
    return until if until.at > clock.utc_now() else Until.after(waits.DEFAULT_S)


def _settles(again: PlannedRetry) -> bool:
    """Return whether a step runs only to learn whether it was done: it is being undone."""
    undoing = again.step.direction == Direction.DO and again.change.undoes(again.step)
    return undoing and again.step.in_doubt and not again.new_key


def _note(again: PlannedRetry, actor: str, reason: str, operation: int | None) -> None:
    step = again.step
    generation = step.generation + again.new_key
    detail: dict[str, Any] = {
        "key": step_key(step.task, step.name, step.direction, generation),
        "new_key": again.new_key,
        "why": KEYS[again.why],
    }
    if again.changed:
        detail |= {"before": step.request, "after": again.request}
    again.change.note(
        step, EventKind.RESUBMITTED, by=actor, reason=reason, operation=operation, **detail
    )


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
    """Mark a step in error as done by an operator: error → processed; its successors go on.

    `result` is what the service would have answered; raises `schemas.Invalid` if it is not that.
    `operation` is kept in the history.
    """
    locked = _lock_in_error(step_id, attempt)
    if isinstance(locked, Refusal):
        return locked
    change, step = locked
    computed = change.workflow, step.name
    payload_schemas.check_result(step.agent, step.action, result, computed=computed)
    done = step.altered(state=StepState.PROCESSED, result=result, in_doubt=False, done_by=actor)
    change.move(moves.DONE_BY_HAND, done, result=result, by=actor)
    change.note(
        step, EventKind.BY_HAND, by=actor, reason=reason, operation=operation, result=result
    )
    if step.direction == Direction.UNDO:
        close_undone(done, change)
    finish([change], by=actor)
    return None


def _lock_in_error(step_id: int, attempt: int) -> tuple[Change, StepView] | Refusal:
    task = Step.objects.filter(id=step_id).values_list("task_id", flat=True).first()
    change = lock([task]).get(task) if task else None
    if change is None:
        return Refusal.NO_SUCH_STEP
    step = change.steps[step_id]
    return _refusal(step, attempt) or (change, step)


def _refusal(step: StepView, attempt: int) -> Refusal | None:
    """Return why a locked step is not what the operator saw, or None when it is."""
    if step.state != StepState.ERROR:
        return Refusal.NOT_IN_ERROR
    return None if step.attempt == attempt else Refusal.OTHER_ATTEMPT
