"""Which waiting steps of a task may start now, and with which requests: pure decisions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..payloads.keys import step_key
from ..payloads.limits import why_not_sent
from ..payloads.placeholders import KEYS, Unresolved, placeholders, resolve
from ..states import ENDED_STEP_STATES, Direction, Outcome, StepState
from .progress import StepView

BY_HAND = (
    "The step to undo was done by hand, so the service does not know its key. Undo it by hand, then "
    "mark this step as done by hand."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Released:
    """A waiting step whose time has come, and the request it will send."""

    id: int
    request: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unbuildable:
    """A waiting step whose request cannot be built from what was recorded, and why."""

    id: int
    reason: str
    code: str = "request_not_built"


def release(
    steps: Collection[StepView], data: Mapping[str, Any], *, undoing: bool
) -> tuple[list[Released], list[Unbuildable], list[int]]:
    """Return what follows for the waiting steps of a task.

    That is: those that may now start, with their requests; those whose request cannot be built; and
    the ids of undo steps that are not needed, as nothing was done. While the task is being undone
    an undo step starts once its own step and all that come after it are settled, and those of them that
    can be are undone. Of other steps only one that is in doubt does (its effect showed after a restore),
    to be settled.
    """
    direction = Direction.UNDO if undoing else Direction.DO
    does = {step.name: step for step in steps if step.direction == Direction.DO}
    waiting = {
        step.name: step
        for step in steps
        if step.state == StepState.WAITING and step.direction == direction
    }
    needless = []
    if undoing:
        needless = [step for name, step in waiting.items() if _needless(does[name], step)]
        for step in needless:
            del waiting[step.name]
    ended = {step.name for step in needless}.union(
        step.name
        for step in steps
        if step.direction == direction and step.state in ENDED_STEP_STATES
    )
    unsettled = _unsettled(does) if undoing else set[str]()
    released: list[Released] = []
    broken: list[Unbuildable] = []
    for step in (
        candidate for candidate in does.values() if undoing and _waits_to_be_settled(candidate)
    ):
        if all(does[name].state in ENDED_STEP_STATES for name in step.after):
            _start(step, steps, data, released, broken)
    for step in waiting.values():
        if step.name in unsettled or not all(name in ended for name in step.after):
            continue
        if undoing and needs_person(does[step.name], step.request):
            broken.append(Unbuildable(id=step.id, reason=BY_HAND, code="done_by_hand"))
            continue
        _start(step, steps, data, released, broken)
    return released, broken, [step.id for step in needless]


def _start(
    step: StepView,
    steps: Collection[StepView],
    data: Mapping[str, Any],
    released: list[Released],
    broken: list[Unbuildable],
) -> None:
    """Add a step whose time has come to those released, or to those whose request cannot be built."""
    try:
        request = resolve(step.request, data, _known(steps))
    except Unresolved as error:
        broken.append(Unbuildable(id=step.id, reason=str(error)))
        return
    if reason := why_not_sent(request):
        broken.append(Unbuildable(id=step.id, reason=f"the request cannot be sent: {reason}"))
    else:
        released.append(Released(id=step.id, request=request))


def _waits_to_be_settled(step: StepView) -> bool:
    """Return whether a step that was not sent here may have been done all the same."""
    return step.state == StepState.WAITING and step.in_doubt


def _unsettled(does: Mapping[str, StepView]) -> set[str]:
    """Return the steps that may still have an effect, and all that one of these comes after.

    A step without an undo step of its own may be at work on what an earlier one did.
    """
    unsettled: set[str] = set()
    fresh = {name for name, step in does.items() if step.state not in ENDED_STEP_STATES}
    while fresh:
        unsettled |= fresh
        fresh = {before for name in fresh for before in does[name].after} - unsettled
    return unsettled


def build(
    step: StepView, steps: Collection[StepView], data: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the request of a step whose template could not be filled before, or None still."""
    does = {other.name: other for other in steps if other.direction == Direction.DO}
    if step.direction == Direction.UNDO and needs_person(does[step.name], step.request):
        return None
    try:
        request: dict[str, Any] = resolve(step.request, data, _known(steps))
    except Unresolved:
        return None
    return None if why_not_sent(request) else request


def _known(steps: Collection[StepView]) -> dict[str, Any]:
    """Return what templates may take of a task's steps: results of those done, and keys of all."""
    does = [step for step in steps if step.direction == Direction.DO]
    results: dict[str, Any] = {
        step.name: step.result or {} for step in does if step.state == StepState.PROCESSED
    }
    task = str(does[0].task)  # once: it takes as long as all the rest
    results[KEYS] = {
        step.name: step_key(task, step.name, step.direction, step.generation) for step in does
    }
    return results


def needs_person(done: StepView, undo_request: Any) -> bool:
    """Return whether only a person can undo a step: it was done by hand, and its undo goes by key.

    An undo that takes the result which was typed in finds what that names.
    """
    return bool(done.done_by) and not needs_result(done.name, undo_request)


def needs_result(step: str, undo_request: Any) -> bool:
    """Return whether the undo of a step takes its result, and not only its key."""
    return any(origin == step for origin, *_ in placeholders(undo_request))


def _needless(done: StepView, undo: StepView) -> bool:
    """Return whether there is nothing to undo: its step was never done.

    Where the service knows of no effect, and the undo needs no result (it goes by key), it is sent
    all the same: a call that is still on its way is then refused when it arrives.
    """
    if done.state != StepState.CANCELLED:
        return False
    return done.outcome != Outcome.ABSENT or needs_result(undo.name, undo.request)
