"""A scheduler begins the undos that the supervisor asks for, each once (P11)."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.db import transaction

from ..models import Step, UndoRequest
from ..models.fields import DatabaseNow
from ..progression import StepView
from ..states import StepState
from .changes import Change, finish, lock
from .holds import held
from .settle import Trouble
from .undo import begin


@dataclass(kw_only=True)
class Begun:
    """What came of requests: how many were dealt with, and whom that concerns."""

    dealt: int = 0
    agents: set[str] = field(default_factory=set)
    applications: set[str] = field(default_factory=set)


def requested_tasks(limit: int, beyond: Collection[UUID] = ()) -> list[UUID]:
    """Return the tasks of the `limit` oldest requests, `beyond` some."""
    rows = UndoRequest.objects.exclude(task__in=beyond).order_by("requested_at", "step_id")
    return list(dict.fromkeys(rows.values_list("task_id", flat=True)[:limit]))


@transaction.atomic
def begin_requested(tasks: Collection[UUID]) -> Begun:
    """Begin the undos that are requested of some tasks; pass over tasks that others have locked.

    Requests are read under the locks of their tasks: another scheduler may have dealt with them. If
    something irreversible was done, or a hold keeps the step, that is in error after all; a step kept
    by a hold has its task undone after the hold's end.
    """
    changes = lock(tasks, wait=False)
    rows = UndoRequest.objects.filter(task__in=changes).select_related("step")
    requests = defaultdict(list)
    for one in rows.order_by("requested_at", "step_id"):
        requests[one.task_id].append(one)
    kept = held([one.step_id for ones in requests.values() for one in ones])
    for task, ones in requests.items():
        _answer(changes[task], ones, kept)
    UndoRequest.objects.filter(task__in=requests).delete()
    by = {task: ones[0].requested_by for task, ones in requests.items()}
    done = Begun(dealt=len(requests))
    for actor in sorted(set(by.values())):
        found = finish([changes[task] for task in by if by[task] == actor], by=actor)
        done.agents |= found.agents
        done.applications |= found.applications
    return done


def _answer(change: Change, requests: Sequence[UndoRequest], kept: Collection[int]) -> None:
    """Begin one task's undo, or have the steps in error for which it was asked."""
    meant = [one for one in requests if _is_meant(change.steps[one.step_id], one)]
    if change.undoing or not meant:
        return
    first, *_ = meant
    waits = any(one.step_id in kept for one in meant)
    if not waits and not begin(change, actor=first.requested_by, reason=first.reason):
        return
    for one in meant:
        _keep(change, one, again=0.0 if waits else None)


def _is_meant(step: StepView, wanted: UndoRequest) -> bool:
    """Return whether a step still is what its task was to be undone for."""
    return step.state == (StepState.ERROR if wanted.unmended else StepState.PENDING)


def _keep(change: Change, wanted: UndoRequest, *, again: float | None) -> None:
    """Have a step in error; `again` is after how many seconds its task is to be undone, if at all."""
    step = wanted.step
    if wanted.unmended:
        if again is not None:
            Step.objects.filter(id=step.id).update(mend_by=DatabaseNow())
        return
    change.moved(replace(change.steps[step.id], state=StepState.ERROR))
    change.troubles.append(
        Trouble(
            step=step.id,
            code=step.error_code or step.outcome,
            message=f"{step.error_message} (failed {step.failure_count} times)".strip(),
            attempt=step.attempt,
            mend_within=again,
            incident=step.incident_id,
        )
    )
