"""After a restore to an earlier time: steps that may have been done since are in doubt (P2, P25)."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from ..models import Event, Step
from ..models.history import EventKind
from ..states import ENDED_STEP_STATES, StepState
from .locked_task import lock
from .resubmit import resubmit
from .step_update import StepUpdate

# The key is as old as the moment of the restore at least: its service may have forgotten it.
DOUBTED = StepUpdate(
    "in_doubt = true, generation = r.known, keyed_at = least(s.keyed_at, r.restored_to)",
    known="int",
    restored_to="timestamptz",
)


@transaction.atomic
def doubt(steps: Mapping[int, int], restored_to: datetime, *, actor: str, reason: str) -> None:
    """Have steps go on as ones that may have been done, each under this generation of its key.

    Their next try is under that key: the service answers with what it did.
    """
    tasks = dict(Step.objects.filter(id__in=steps).values_list("id", "task_id"))
    changes = lock(set(tasks.values()))
    views = [changes[task].steps[step] for step, task in tasks.items()]
    unended = [view for view in views if view.state not in ENDED_STEP_STATES]
    DOUBTED.write(
        unended,
        known=[steps[view.id] for view in unended],
        restored_to=[restored_to] * len(unended),
    )
    Event.objects.bulk_create(
        changes[view.task].note(
            view, EventKind.LATE, by=actor, reason=reason, generation=steps[view.id]
        )
        for view in views
    )


def resume(steps: Mapping[int, int], *, actor: str, reason: str) -> int:
    """Resubmit those of the steps that are in error, under their keys; return how many stay there."""
    failed = Step.objects.filter(id__in=steps, process_state=StepState.ERROR)
    attempts = failed.order_by("id").values_list("id", "attempt")
    refusals = [
        resubmit(step, attempt=attempt, actor=actor, reason=reason)
        for step, attempt in list(attempts)
    ]
    return sum(refusal is not None for refusal in refusals)
