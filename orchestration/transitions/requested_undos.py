"""Begin the undos that the supervisor requested, each once (P11)."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cache
from uuid import UUID

from django.db import transaction
from django.db.models import F

from ..database import prepared
from ..database.sql import MANY, Among, Parameter, compiled
from ..decisions.progress import StepView
from ..models import UndoRequest
from ..states import StepState
from . import moves
from .change import Change, FinalFailure
from .handled import Handled
from .holds import held
from .locked_task import lock
from .settle import finish
from .undo import begin


def requested_tasks(limit: int, excluded: Collection[UUID] = ()) -> list[UUID]:
    """Return the tasks of the `limit` oldest requests, except `excluded`."""
    rows = prepared.run(_oldest(), {"excluded": [str(task) for task in excluded], "limit": limit})
    return list(dict.fromkeys(task for (task,) in rows))


@cache
def _oldest() -> str:
    """Return the statement for the tasks of the oldest requests; it is compiled once."""
    rows = UndoRequest.objects.exclude(Among(F("task_id"), Parameter("excluded", "uuid[]")))
    return compiled(rows.order_by("requested_at", "step_id").values_list("task_id")[:MANY])


@transaction.atomic
def begin_requested(tasks: Collection[UUID]) -> Handled:
    """Begin the requested undos of some tasks; skip tasks that other sessions have locked.

    Requests are read under the locks of their tasks: another scheduler may have handled them. If
    something irreversible was done, or the step is held, the step goes to error; the task of a held
    step is undone after the release.
    """
    changes = lock(tasks, wait=False)
    rows = UndoRequest.objects.filter(task__in=changes).select_related("step")
    requests = defaultdict(list)
    for request in rows.order_by("requested_at", "step_id"):
        requests[request.task_id].append(request)
    held_steps = held([request.step_id for group in requests.values() for request in group])
    for task, group in requests.items():
        _answer(changes[task], group, held_steps)
    UndoRequest.objects.filter(task__in=requests).delete()
    by = {task: group[0].requested_by for task, group in requests.items()}
    done = Handled(handled=len(requests))
    for actor in sorted(set(by.values())):
        done.add(finish([changes[task] for task in by if by[task] == actor], by=actor))
    return done


def _answer(change: Change, requests: Sequence[UndoRequest], held_steps: Collection[int]) -> None:
    """Begin one task's undo, or have the steps in error for which it was asked."""
    valid = [request for request in requests if _is_valid(change.steps[request.step_id], request)]
    if change.undoing or not valid:
        return
    first, *_ = valid
    waits = any(request.step_id in held_steps for request in valid)
    if not waits and not begin(change, actor=first.requested_by, reason=first.reason):
        return
    for request in valid:
        _to_error(change, request, resolve_within=0.0 if waits else None)


def _is_valid(step: StepView, request: UndoRequest) -> bool:
    """Return whether a step still is what its task was to be undone for.

    Code of the release before names no attempt.
    """
    asked_for = StepState.ERROR if request.unmended else StepState.PENDING
    return step.state == asked_for and request.attempt in {step.attempt, None}


def _to_error(change: Change, request: UndoRequest, *, resolve_within: float | None) -> None:
    """Have a step in error; `resolve_within` seconds later its task is to be undone, if at all."""
    step = change.steps[request.step_id]
    if request.unmended:
        if resolve_within is not None:
            change.move(moves.DUE_FOR_UNDO, step)
        return
    failed = request.step
    change.fail(
        FinalFailure(
            step=step.id,
            code=step.error_code or step.outcome,
            message=f"{failed.error_message} (failed {failed.failure_count} times)".strip(),
            attempt=step.attempt,
            resolve_within=resolve_within,
            incident=failed.incident_id,
        )
    )
