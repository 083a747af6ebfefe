"""Which waiting steps of a task may start now, and with which requests: pure decisions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..payloads.keys import step_key
from ..payloads.limits import why_not_kept, why_not_sent
from ..payloads.placeholders import CODES, KEYS, Unresolved, placeholders, resolve
from ..payloads.text import as_text
from ..states import ENDED_STEP_STATES, Direction, Outcome, StepState
from .progress import StepView

NOT_BUILT = "request_not_built"
INVALID_TIME = "invalid_time"  # the code of a step where it is not known when it may begin
NO_TIMES: Mapping[int, bool] = {}
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
    code: str = NOT_BUILT


@dataclass(kw_only=True, slots=True)
class Follows:
    """What follows for the waiting steps of a task: steps to start, those that fail, and ids of others.

    `needless` are undo steps of what was never done; `skipped` are steps whose condition does not hold;
    `untimed` are steps for which the caller finds out whether they may begin yet.
    """

    released: list[Released] = field(default_factory=list)
    broken: list[Unbuildable] = field(default_factory=list)
    needless: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    untimed: list[int] = field(default_factory=list)


def release(
    steps: Collection[StepView],
    data: Mapping[str, Any],
    *,
    undoing: bool,
    times: Mapping[int, bool] = NO_TIMES,
) -> Follows:
    """Return what follows for the waiting steps of a task.

    A step starts, or is skipped, once all that it comes after has ended. An undo step starts once its own
    step and all that come after it are settled, and those of them that can be are undone. While the whole
    task is being undone, other steps start only if they are in doubt (their effect showed after a restore),
    to be settled. `times` says of steps that have a time whether it has come; what may have been done has
    had it.
    """
    does = {step.name: step for step in steps if step.direction == Direction.DO}
    follows = Follows()
    known = _Known(steps)
    if len(does) < len(steps):
        waiting, ended = _to_undo(steps, does, follows)
        for step in [step for step in waiting.values() if ended.issuperset(step.after)]:
            if needs_person(does[step.name], step.request):
                follows.broken.append(Unbuildable(id=step.id, reason=BY_HAND, code="done_by_hand"))
            else:
                _start(step, data, known, follows, times)
    waiting = {
        name: step
        for name, step in does.items()
        if step.state == StepState.WAITING and (step.in_doubt or not undoing)
    }
    ended = {name for name, step in does.items() if step.state in ENDED_STEP_STATES}
    while due := [step for step in waiting.values() if ended.issuperset(step.after)]:
        before = len(ended)
        for step in due:
            del waiting[step.name]
            if not _start(step, data, known, follows, times):
                ended.add(step.name)
        if len(ended) == before:
            break  # none was skipped, so none has come within reach
    return follows


def _to_undo(
    steps: Collection[StepView], does: Mapping[str, StepView], follows: Follows
) -> tuple[dict[str, StepView], set[str]]:
    """Return the undo steps that may wait for others only, and the names of those that have ended."""
    undos = {step.name: step for step in steps if step.direction == Direction.UNDO}
    unsettled = _unsettled(does)
    waiting, ended = {}, set()
    for name, step in undos.items():
        if step.state in ENDED_STEP_STATES:
            ended.add(name)
        elif step.state == StepState.WAITING and _needless(does[name], step):
            ended.add(name)
            follows.needless.append(step.id)
        elif step.state == StepState.WAITING and name not in unsettled:
            waiting[name] = step
    return waiting, ended


def _start(
    step: StepView,
    data: Mapping[str, Any],
    known: "_Known",
    follows: Follows,
    times: Mapping[int, bool],
) -> bool:
    """Have a step whose turn has come start, wait for its time, or fail; return False if it is skipped."""
    if has_time(step) and not (step.in_doubt or times.get(step.id)):
        follows.untimed += [] if step.id in times else [step.id]
        return True
    try:
        if not _is_needed(step, data, known):
            follows.skipped.append(step.id)
            return False
        request = resolve(step.request, data, known.results)
    except Unresolved as error:
        follows.broken.append(Unbuildable(id=step.id, reason=str(error)))
        return True
    if reason := why_not_stored(step, request):
        text = f"the request cannot be sent: {reason}"
        follows.broken.append(Unbuildable(id=step.id, reason=text))
    else:
        follows.released.append(Released(id=step.id, request=request))
    return True


def has_time(step: StepView) -> bool:
    """Return whether a step may have to wait for its time."""
    return step.flow is not None and step.flow.not_before is not None


def _is_needed(step: StepView, data: Mapping[str, Any], known: "_Known") -> bool:
    """Return whether the condition of a step holds, if it has one; what may have been done is needed."""
    if step.flow is None or step.in_doubt:
        return True
    return bool(resolve(step.flow.when, data, known.results))


class _Known:
    """What templates may take of a task's steps, put together when the first of them is filled in."""

    def __init__(self, steps: Collection[StepView]) -> None:
        self._steps = steps

    @cached_property
    def results(self) -> dict[str, Any]:
        """Results of steps that are done, codes of those that were passed over, and keys of all."""
        return _known(self._steps)


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
    return None if why_not_stored(step, request) else request


def why_not_stored(step: StepView, request: Mapping[str, Any]) -> str:
    """Return why a request is too large; the inputs of children are not sent, and kept as an input is."""
    if step.makes_children:
        return why_not_kept(as_text(request), request)
    return why_not_sent(request)


def _known(steps: Collection[StepView]) -> dict[str, Any]:
    """Return what templates may take of a task's steps: results of those done, and keys of all."""
    does = [step for step in steps if step.direction == Direction.DO]
    results: dict[str, Any] = {
        step.name: step.result or {}
        for step in does
        if step.state == StepState.PROCESSED or step.outcome == Outcome.LATER
    }
    task = str(does[0].task)  # once: it takes as long as all the rest
    results[KEYS] = {
        step.name: step_key(task, step.name, step.direction, step.generation) for step in does
    }
    results[CODES] = {
        step.name: step.error_code
        for step in does
        if step.state == StepState.SKIPPED and step.error_code
    }
    return results


def value_of(template: Any, steps: Collection[StepView], data: Mapping[str, Any]) -> Any:
    """Return the value of a template of a step; raise `Unresolved` if it has none."""
    return resolve(template, data, _known(steps))


def needs_person(done: StepView, undo_request: Any) -> bool:
    """Return whether only a person can undo a step: it was done by hand, and its undo goes by key.

    An undo that takes the result which was typed in finds what that names.
    """
    return (
        bool(done.done_by) and not done.makes_children and not needs_result(done.name, undo_request)
    )


def needs_result(step: str, undo_request: Any) -> bool:
    """Return whether the undo of a step takes its result, and not only its key."""
    return any(origin == step for origin, *_ in placeholders(undo_request))


def _needless(done: StepView, undo: StepView) -> bool:
    """Return whether there is nothing to undo: its step was never done.

    Where the service knows of no effect, and the undo needs no result (it goes by key), it is sent
    all the same: a call that is still on its way is then refused when it arrives.
    """
    if done.state != StepState.CANCELLED or done.outcome == Outcome.LATER or done.makes_children:
        return False  # what a service accepted, or children do, is taken back
    return done.outcome != Outcome.ABSENT or needs_result(undo.name, undo.request)
