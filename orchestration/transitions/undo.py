"""Begin undos: cancel what was not done, undo the rest in reverse order (P11)."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction

from ..applications.outbox import StatusUpdate
from ..decisions.compensation import UndoPlan, part_of, plan, signature
from ..decisions.progress import Refusal, StepView
from ..models.history import EventKind
from ..models.inbox import StatusKind
from ..states import Direction, Outcome, StepState, TaskState
from . import moves, reports, undo_requests
from .change import Change
from .locked_task import lock
from .new_steps import NewStep
from .settle import finish


@transaction.atomic
def undo(
    task_id: UUID,
    *,
    actor: str,
    reason: str,
    force: bool | Collection[str] = False,
    seen: Collection[str] = tuple(TaskState),
    planned: str | None = None,
    operation: int | None = None,
) -> Refusal | None:
    """Begin the undo of a task; return why not, or None when it has begun.

    An irreversible effect that happened, or may have, prevents it, unless it is forced: then the effect
    remains, and the task's history names it. `force` may also name the only steps whose effects may
    remain. `seen` are the states for which it is meant: the task may have changed since its page was
    loaded. `planned` is the signature of the plan that was shown. `operation` is kept in the history.
    """
    change = lock([task_id]).get(task_id)
    if change is None:
        return Refusal.NO_SUCH_TASK
    if change.undoing:
        return Refusal.NOT_UNDOABLE
    if change.state not in seen:
        return Refusal.CHANGED
    if planned is not None and planned != signature(plan(change.steps.values())):
        return Refusal.CHANGED
    named: Collection[str] = () if isinstance(force, bool) else force
    standing = None if force is True else named
    forbidding = begin(change, actor=actor, reason=reason, standing=standing, operation=operation)
    finish([change], by=actor)
    return Refusal.IRREVERSIBLE if forbidding else None


@transaction.atomic
def undo_part(task_id: UUID, names: Collection[str], *, actor: str, reason: str) -> Refusal | None:
    """Begin the undo of some steps of a task and all that come after them; return why not, if so.

    Other steps go on, and the task with them. If none is left, it is the undo of the whole task.
    """
    change = lock([task_id]).get(task_id)
    if change is None:
        return Refusal.NO_SUCH_TASK
    steps = [step for step in change.steps.values() if step.direction == Direction.DO]
    if not names or not {step.name for step in steps}.issuperset(names):
        return Refusal.NO_SUCH_STEP
    part = part_of(steps, names)
    if change.undoing or not _is_left(change, part):
        return Refusal.NOT_UNDOABLE
    forbidding = begin(change, actor=actor, reason=reason, part=part)
    finish([change], by=actor)
    return Refusal.IRREVERSIBLE if forbidding else None


def _is_left(change: Change, part: Collection[str] | None) -> bool:
    """Return whether anything of a part is to be cancelled or undone: not if it was before."""
    planned = plan(change.steps.values(), part)
    return bool(part is None or planned.cancel or planned.undo or planned.standing)


def begin(
    change: Change,
    *,
    actor: str,
    reason: str,
    standing: Collection[str] | None = (),
    part: Collection[str] | None = None,
    operation: int | None = None,
) -> Sequence[StepView]:
    """Begin the undo of a locked task; return the steps that prevent it, none when it has begun.

    `standing` are the names of irreversible steps whose effects may remain, or None for all of them.
    `part` are the only steps to undo; other steps go on. The caller finishes the change.
    """
    planned = plan(change.steps.values(), part)
    names = [step.name for step in planned.standing]
    forbidding = [
        step for step in planned.standing if not (standing is None or step.name in standing)
    ]
    if forbidding:
        named = ", ".join(step.name for step in forbidding)
        why = f"{named} cannot be undone; asked for because: {reason}"
        change.note(None, EventKind.UNDO_REFUSED, by=actor, reason=why)
        return forbidding
    if part is None:
        detail = _begin_whole(change)
    else:
        detail = _begin_part(change, part)
        undo_requests.take_back([*planned.cancel, *planned.settle])
    change.note(
        None, EventKind.UNDO, by=actor, reason=reason, operation=operation,
        forced=bool(names), standing=names, **detail,
    )  # fmt: skip
    for unneeded in planned.cancel:
        change.cancel(change.steps[unneeded])
    _settle(change, planned, part)
    change.new_steps += [
        NewStep(change.id, change.priority, change.fairness_key, step) for step in planned.undo
    ]
    reports.undoing(change, part)
    return ()


def _begin_whole(change: Change) -> dict[str, Any]:
    change.enter(TaskState.UNDOING)
    change.undoing = True
    change.updates.append(StatusUpdate(task=change.id, kind=StatusKind.UNDOING))
    return {}


def _begin_part(change: Change, part: Collection[str]) -> dict[str, Any]:
    """Have a task go on without some steps; return what its history and its application get."""
    if change.state == TaskState.PROCESSED:
        change.enter(TaskState.PROCESSING)
    names = [step.name for step in change.steps.values() if step.name in part]
    change.notify_of_part(names)
    return {"steps": names}


def _settle(change: Change, planned: UndoPlan, part: Collection[str] | None) -> None:
    """Find out whether steps were done; those of a part that have no undo end as they would have."""
    undone = {step.name for step in planned.undo}
    for step in [change.steps[in_doubt] for in_doubt in planned.settle]:
        if part is not None and step.name not in undone:
            continue
        answered = step.state == StepState.PROCESSING and step.locked_by is None
        refused = answered and step.outcome == Outcome.REJECTED
        again = refused or step.state == StepState.ERROR
        settled = step.altered(state=StepState.PENDING if again else step.state)
        arrival = change.next_in_line(step)
        change.move(moves.SETTLED, settled, arrival=arrival, refused=refused)
