"""Record the result of an awaiting step for a person, with the reason that they gave."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from django.db import transaction

from ..decisions.progress import Refusal
from ..models import Event, Step
from ..models.history import EventKind
from ..states import Outcome, StepState
from ..transitions.locked_task import lock
from ..transitions.reported import report
from ..transitions.waits import Report


@transaction.atomic
def record(
    step_id: int,
    *,
    attempt: int,
    actor: str,
    reason: str,
    result: Mapping[str, Any],
    refused: str = "",
    operation: int | None = None,
) -> Refusal | None:
    """End an awaiting step with a result, or as `refused` with a code; return why not, or None.

    Another may have reported its end since the person looked: then nothing is changed, also if that
    was the same. `attempt` is the one that was seen. `operation` is kept in the history.
    """
    task = Step.objects.filter(id=step_id).values_list("task_id", flat=True).first()
    change = lock([task]).get(task) if task else None
    if change is None or task is None:
        return Refusal.NO_SUCH_STEP
    step = change.steps[step_id]
    if step.state != StepState.AWAITING:
        return Refusal.REPORTED
    if step.attempt != attempt:
        return Refusal.CHANGED
    reported = Report(
        id=str(uuid4()),
        actor=actor,
        outcome=(Outcome.REJECTED if refused else Outcome.DONE).value,
        result={} if refused else result,
        code=refused,
        message=reason if refused else "",
    )
    (refusal,) = report([(task, step.name, reported)])
    if refusal:
        return refusal
    Event.objects.create(
        task_id=task,
        step_id=step_id,
        kind=EventKind.BY_HAND,
        actor=actor,
        attempt=attempt,
        reason=reason,
        operation_id=operation,
        detail={"report": reported.id, **({"refused": refused} if refused else {"result": result})},
    )
    return None
