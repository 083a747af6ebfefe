"""Request the undo of tasks; schedulers begin it (`requested_undos`) (P11).

A request is committed with its failure. The failed step waits until a scheduler takes the request, and
is handled again only if none does for a long time.
"""

from collections.abc import Collection, Iterable

from ..decisions.progress import StepView
from ..models import UndoRequest
from ..models.history import EventKind
from .change import Change

WAIT = 86_400.0  # seconds for which a step waits that its task be undone


def take_back(steps: Collection[int]) -> None:
    """Take back what was requested for steps of locked tasks: they are tried again."""
    UndoRequest.objects.filter(step__in=steps).delete()


def request(
    steps: Iterable[tuple[Change, StepView, str]], *, by: str, unmended: bool = False
) -> None:
    """Ask that locked tasks be undone: each for a step at its attempt, and why; the caller finishes them.

    It takes the place of a request for an earlier attempt.
    """
    steps = list(steps)
    UndoRequest.objects.bulk_create(
        [
            UndoRequest(
                step_id=step.id,
                task_id=change.id,
                attempt=step.attempt,
                requested_by=by,
                reason=why,
                unmended=unmended,
            )
            for change, step, why in steps
        ],
        update_conflicts=True,
        unique_fields=["step"],
        update_fields=["attempt", "unmended", "requested_at", "requested_by", "reason"],
    )
    for change, step, why in steps:
        change.note(step, EventKind.UNDO_REQUESTED, by=by, reason=why)
