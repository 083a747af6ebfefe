"""What operators do about a step in error: have it tried again, or say that it is done (P25)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import transaction

from .. import alerts, schemas
from ..models import Step, Task
from ..models.fields import DatabaseNow
from ..models.history import EventKind
from ..progression import Refusal, StepView, build
from ..recovery import KEY_FORGOTTEN
from ..states import Direction, Outcome, StepState
from ..workflow import step_key
from .changes import NOTHING, Amendment, Change, amend, cancel, finish, lock, note

REASONS = {
    "rejected": "the service definitely rejected the last request: it remembers that by its key",
    "nothing": "it was found out by hand that nothing was done under the old key",
    "changed": "nothing was done under the old key, and one key never has two contents",
    "same": "the effect may have happened: only the same key can tell",
}


@transaction.atomic
def resubmit(
    step_id: int,
    *,
    attempt: int,
    actor: str,
    reason: str,
    request: dict[str, Any] | None = None,
    nothing_done: bool = False,
    amendment: Amendment = NOTHING,
) -> Refusal | None:
    """Make a step in error pending again; return why not, or None when it was done.

    `attempt` is the one the operator saw fail: if the step was resubmitted since, even if it has
    failed again, the operator decides anew. `request` changes its input: raises `schemas.Invalid` if
    its action does not take that. `nothing_done` is the operator's word that the last attempts had
    no effect. The key's generation rises only when that is certain, by such a word or a definite
    rejection; after any other failure the effect may have happened, and only the same key can tell.
    `amendment` is what an application changes, by name.
    """
    found = _lock_in_error(step_id, attempt)
    if isinstance(found, Refusal):
        return found
    change, view, step = found
    if nothing_done and change.undoing and step.direction == Direction.DO:
        return _let_be(change, view, step, actor=actor, reason=reason)
    if amendment.request and request is None:
        request = {**step.request, **amendment.request}
    doubt = step.in_doubt and not nothing_done
    if doubt and step.error_code == KEY_FORGOTTEN:
        return Refusal.KEY_FORGOTTEN
    changed = request is not None and request != step.request
    if doubt and changed:
        return Refusal.IN_DOUBT
    why = _why(step, changed=changed, nothing_done=nothing_done)
    before = step.request
    if changed and request is not None:
        schemas.check(step.agent, step.action, request, like=step.request)
        step.request = request
    new_key = why != "same"
    rebuild = step.attempt == 0 and not changed
    step.failure_count = step.rounds = 0
    step.generation += new_key
    step.in_doubt = step.in_doubt and not new_key
    step.keyed_at = None if new_key else step.keyed_at
    step.settling = change.undoing and step.direction == Direction.DO and step.in_doubt
    if rebuild:
        built = build(view, change.steps.values(), change.data)
        if built is None:
            return Refusal.NOT_BUILDABLE
        step.request = before = built
    amend(change, amendment.data)
    step.run_after = DatabaseNow() + timedelta(seconds=amendment.wait) if amendment.wait else None
    _again(change, view, step, actor=actor, reason=reason, why=why, before=before)
    return None


def _why(step: Step, *, changed: bool, nothing_done: bool) -> str:
    if step.outcome == Outcome.REJECTED:
        return "rejected"
    if nothing_done:
        return "nothing"
    return "changed" if changed and step.attempt else "same"


def _again(
    change: Change, view: StepView, step: Step, *, actor: str, reason: str, why: str, before: Any
) -> None:
    """Write a resubmission: error → pending."""
    alert, step.alert = step.alert_id, None
    step.mend_by = None
    step.process_state = StepState.PENDING
    step.ended_at = None
    step.pending_since = DatabaseNow()
    step.save(
        update_fields=[
            *("process_state", "failure_count", "rounds", "generation", "in_doubt", "keyed_at"),
            *("settling", "alert", "ended_at", "request", "pending_since", "mend_by", "run_after"),
        ]
    )
    detail: dict[str, Any] = {
        "key": step_key(step.task_id, step.name, step.direction, step.generation),
        "new_key": why != "same",
        "why": REASONS[why],
    }
    if step.request != before:
        detail |= {"before": before, "after": step.request}
    note(change, view, EventKind.RESUBMITTED, by=actor, reason=reason, **detail).save()
    change.moved(replace(view, state=StepState.PENDING, request=step.request))
    finish([change], by=actor)
    alerts.close_if_healed([alert])


@transaction.atomic
def done_by_hand(
    step_id: int, *, attempt: int, actor: str, reason: str, result: dict[str, Any]
) -> Refusal | None:
    """Take an operator's word that a step in error is done: error → skipped; its successors go on.

    `result` is what the service would have answered; raises `schemas.Invalid` if it is not that.
    """
    found = _lock_in_error(step_id, attempt)
    if isinstance(found, Refusal):
        return found
    change, view, step = found
    schemas.check_result(step.agent, step.action, result)
    alert = step.alert_id
    Step.objects.filter(id=step.id).update(
        process_state=StepState.SKIPPED, result=result, alert=None, mend_by=None, in_doubt=False,
        settling=False, ended_at=DatabaseNow(),
    )  # fmt: skip
    note(change, view, EventKind.BY_HAND, by=actor, reason=reason, result=result).save()
    change.moved(replace(view, state=StepState.SKIPPED, result=result, in_doubt=False))
    finish([change], by=actor)
    alerts.close_if_healed([alert])
    return None


def _let_be(
    change: Change, view: StepView, step: Step, *, actor: str, reason: str
) -> Refusal | None:
    """Let a step of a task being undone be, on an operator's word that nothing was done."""
    alert = step.alert_id
    cancel([step.id])
    note(change, view, EventKind.SETTLED, by=actor, reason=reason).save()
    change.moved(replace(view, state=StepState.CANCELLED, in_doubt=False))
    finish([change], by=actor)
    alerts.close_if_healed([alert])
    return None


def _lock_in_error(step_id: int, attempt: int) -> tuple[Change, StepView, Step] | Refusal:
    task = Task.objects.filter(steps=step_id).values_list("id", flat=True).first()
    change = lock([task]).get(task) if task else None
    if change is None:
        return Refusal.NO_SUCH_STEP
    step = Step.objects.get(id=step_id)
    if step.process_state != StepState.ERROR:
        return Refusal.NOT_IN_ERROR
    if step.attempt != attempt:
        return Refusal.OTHER_ATTEMPT
    return change, change.steps[step_id], step
