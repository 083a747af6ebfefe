"""After a restore to an earlier time: steps that may have been done since are in doubt (P2, P25)."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from ..database import sql
from ..models import Event, Step
from ..models.history import EventKind
from ..states import ENDED_STEP_STATES, StepState
from .locked_task import lock, note
from .resubmit import resubmit
from .versions import attempts, require

# The key is as old as the moment of the restore at least: its service may have forgotten it.
DOUBTED = """
UPDATE orchestration_step s SET in_doubt = true, generation = r.generation,
    keyed_at = least(s.keyed_at, %(restored_to)s)
FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(before)s::int[], %(generations)s::int[])
    AS r (id, attempt, before, generation)
WHERE s.id = r.id AND (s.attempt, s.generation) = (r.attempt, r.before)
    AND s.process_state IN ('waiting', 'pending', 'processing', 'error')
RETURNING s.id
"""


@transaction.atomic
def doubt(steps: Mapping[int, int], restored_to: datetime, *, actor: str, reason: str) -> None:
    """Have steps go on as ones that may have been done, each under this generation of its key.

    Their next try is under that key: the service answers with what it did.
    """
    tasks = dict(Step.objects.filter(id__in=steps).values_list("id", "task_id"))
    changes = lock(set(tasks.values()))
    views = [changes[task].steps[step] for step, task in tasks.items()]
    seen = attempts(views)
    written = sql.run(
        DOUBTED,
        {
            **seen,
            "before": seen["generations"],
            "generations": [steps[view.id] for view in views],
            "restored_to": restored_to,
        },
    )
    require(written, [view for view in views if view.state not in ENDED_STEP_STATES])
    Event.objects.bulk_create(
        note(
            changes[task], changes[task].steps[step], EventKind.LATE, by=actor, reason=reason,
            generation=steps[step],
        )
        for step, task in tasks.items()
    )  # fmt: skip


def resume(steps: Mapping[int, int], *, actor: str, reason: str) -> int:
    """Resubmit those of the steps that are in error, under their keys; return how many stay there."""
    failed = Step.objects.filter(id__in=steps, process_state=StepState.ERROR)
    attempts = failed.order_by("id").values_list("id", "attempt")
    refusals = [
        resubmit(step, attempt=attempt, actor=actor, reason=reason)
        for step, attempt in list(attempts)
    ]
    return sum(refusal is not None for refusal in refusals)
