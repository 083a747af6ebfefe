"""An operator's resubmit: error → pending, once (P25)."""

from django.db import transaction

from .. import alerts
from ..models import Event, Step, Task
from ..models.history import EventKind
from ..progression import Refusal
from ..states import DONE_STEP_STATES, Outcome, StepState
from ..workflow import Unresolved, resolve
from .recover import settle_from_database


@transaction.atomic
def resubmit(step_id: int, *, attempt: int, actor: str, reason: str) -> Refusal | None:
    """Make a step in error pending again; return why not, or None when it was done.

    `attempt` is the one the operator saw fail: if the step was resubmitted since, even if it has
    failed again, the operator decides anew. The key's generation rises only when the service
    definitely rejected the last attempt; after any other failure the effect may have happened, and
    only the same key can tell.
    """
    task = Task.objects.select_for_update(no_key=True).filter(steps=step_id).first()
    if task is None:
        return Refusal.NO_SUCH_STEP
    step = Step.objects.get(id=step_id)
    if step.process_state != StepState.ERROR:
        return Refusal.NOT_IN_ERROR
    if step.attempt != attempt:
        return Refusal.OTHER_ATTEMPT
    if step.attempt == 0 and not _build(step, task):
        return Refusal.NOT_BUILDABLE
    alert = step.alert_id
    rejected = step.outcome == Outcome.REJECTED
    step.process_state = StepState.PENDING
    step.failure_count = 0
    step.generation += 1 if rejected else 0
    step.alert = None
    step.ended_at = None
    step.save(
        update_fields=[
            *("process_state", "failure_count", "generation", "alert", "ended_at", "request")
        ]
    )
    Event.objects.create(
        task=task,
        step=step,
        kind=EventKind.RESUBMITTED,
        actor=actor,
        attempt=attempt,
        reason=reason,
    )
    settle_from_database({task.id})
    alerts.close_if_healed([alert])
    return None


def _build(step: Step, task: Task) -> bool:
    """Build the request of a step that never got as far as having one; say whether it worked."""
    done = task.steps.filter(process_state__in=DONE_STEP_STATES)
    results = {name: found or {} for name, found in done.values_list("name", "result")}
    try:
        step.request = resolve(step.request, task.data, results)
    except Unresolved:
        return False
    return True
