"""The supervisor asks that tasks be undone: schedulers take the requests (`requested`) (P11).

A request is committed with the failure that it is for. The failed step waits meanwhile: for so long
that nothing else happens to it, unless no scheduler comes in all that time.
"""

from collections.abc import Iterable

from ..models import Event, UndoRequest
from ..models.history import EventKind
from ..progression import StepView
from .changes import Change, note

WAIT = 86_400.0  # seconds for which a step waits that its task be undone


def request(
    steps: Iterable[tuple[Change, StepView, str]], *, by: str, unmended: bool = False
) -> None:
    """Ask that locked tasks be undone: each for a step, and why."""
    steps = list(steps)
    UndoRequest.objects.bulk_create(
        [
            UndoRequest(
                step_id=step.id, task_id=change.id, requested_by=by, reason=why, unmended=unmended
            )
            for change, step, why in steps
        ],
        ignore_conflicts=True,
    )
    Event.objects.bulk_create(
        note(change, step, EventKind.UNDO_REQUESTED, by=by, reason=why)
        for change, step, why in steps
    )
