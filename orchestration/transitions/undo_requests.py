"""Request the undo of tasks; schedulers begin it (`requested_undos`) (P11).

A request is committed with its failure. The failed step waits until a scheduler takes the request, and
is handled again only if none does for a long time.
"""

from collections.abc import Iterable

from ..decisions.progress import StepView
from ..models import Event, UndoRequest
from ..models.history import EventKind
from .locked_task import Change, note

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
