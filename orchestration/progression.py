"""What follows for a task when some of its steps change: pure decisions over plain data."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from .states import (
    DONE_STEP_STATES,
    ENDED_STEP_STATES,
    Direction,
    Outcome,
    StepState,
    TaskState,
)
from .workflow import (
    KEYS,
    UNDECLARED,
    Unresolved,
    Workflow,
    placeholders,
    resolve,
    step_key,
)


class Refusal(Enum):
    """Why a write did not land: a normal outcome."""

    NO_SUCH_STEP = "there is no such step"
    NOT_PROCESSING = "the step is not being processed any more"
    OTHER_ATTEMPT = "the reply is for another attempt"
    ALREADY_ANSWERED = "this attempt was answered already"
    NOT_IN_ERROR = "the step is not in error"
    NOT_BUILDABLE = "its request still cannot be built"
    NO_SUCH_TASK = "there is no such task"
    IN_DOUBT = (
        "it may have been done: only the same request under the same key can tell, so its input "
        "cannot be changed"
    )
    KEY_FORGOTTEN = (
        "it may have been done, and the service has forgotten the key by now: find out by hand; "
        "then say what was done, or that nothing was"
    )
    INVALID = "the input or result is not valid"
    NOT_UNDOABLE = "the task is being undone, or was"
    IRREVERSIBLE = "something that was done, or may have been, cannot be undone"
    HELD_ALREADY = "it is held already"
    NOT_HELD = "it is not held any more"
    CHANGED = "it has changed since it was seen"
    ENDED = "it has ended"
    NOTHING_TO_DO = "there is nothing to do: no item of the selection is eligible"
    GROWN = "more is selected by now than the dry run showed: look at it again"
    TOO_MANY = "so many cannot be frozen at once: narrow the selection"
    SAME_PERSON = "a second person must be another person"
    NOT_SHUT = "its gate is not shut, or its probe is due already"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepView:
    """What decisions need of a step."""

    id: int
    task: Any
    name: str
    agent: str
    state: str
    after: Sequence[str]
    attempt: int
    locked_by: str | None
    request: Mapping[str, Any]
    result: Mapping[str, Any] | None
    direction: str = Direction.DO
    generation: int = 1
    outcome: str = ""
    in_doubt: bool = False
    undo_action: str = ""
    undo_request: Mapping[str, Any] | None = None
    irreversible: str = ""


RENAMED = {"state": "process_state", "task": "task_id"}  # columns not called as a view's fields are


@dataclass(frozen=True, kw_only=True, slots=True)
class StepPlan:
    """A step to be: ready at once, with its request built, or waiting with a template."""

    name: str
    agent: str
    action: str
    after: Sequence[str]
    request: Mapping[str, Any]
    ready: bool
    direction: str = Direction.DO
    undo_action: str = ""
    undo_request: Mapping[str, Any] | None = None
    irreversible: str = ""
    charges: Mapping[str, Any] | None = None


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


def first_steps(workflow: Workflow, data: Mapping[str, Any]) -> list[StepPlan]:
    """Return the steps of a new task; raise `Unresolved` if `data` lacks fields that it takes.

    The templates of waiting steps are kept as they are: a value of the input is put in only when
    the request is built, so that no input can pose as a placeholder.
    """
    workflow.require(data)
    plans = []
    for step in workflow.steps:
        ready = not step.after
        undo = "" if step.undo in {None, UNDECLARED} else str(step.undo)
        plans.append(
            StepPlan(
                name=step.name,
                agent=step.agent,
                action=step.action,
                after=step.after,
                request=resolve(step.request, data, {}) if ready else step.request,
                ready=ready,
                undo_action=undo,
                undo_request=step.undo_request if undo else None,
                irreversible=step.irreversible,
                charges=resolve(step.charges, data, {}),
            )
        )
    return plans


def refuse_reply(step: StepView | None, attempt: int) -> Refusal | None:
    """Return why a reply for `attempt` may change nothing, or None when it may (the fence)."""
    if step is None:
        return Refusal.NO_SUCH_STEP
    if step.attempt != attempt:
        return Refusal.OTHER_ATTEMPT
    if step.state != StepState.PROCESSING:
        return Refusal.NOT_PROCESSING
    if step.locked_by is None:
        return Refusal.ALREADY_ANSWERED
    return None


def after_reply(
    step: StepView, outcome: str, result: Mapping[str, Any], *, undoing: bool
) -> StepView:
    """Return the step as it is once a reply to its attempt is recorded.

    What is neither done nor refused stays processing, unlocked, for the supervisor to count. While
    its task is being undone, a step of which nothing was done is simply let be.
    """
    settled = outcome in {Outcome.DONE, Outcome.REJECTED, Outcome.ABSENT}
    in_doubt = not settled and (step.in_doubt or outcome == Outcome.UNKNOWN)
    step = replace(step, locked_by=None, outcome=outcome, in_doubt=in_doubt)
    unwanted = undoing and step.direction == Direction.DO
    if outcome == Outcome.DONE:
        return replace(step, state=StepState.PROCESSED, result=result)
    if unwanted and settled:
        return replace(step, state=StepState.CANCELLED)
    if outcome == Outcome.REJECTED:
        return replace(step, state=StepState.ERROR)
    return step


def release(
    steps: Collection[StepView], data: Mapping[str, Any], *, undoing: bool
) -> tuple[list[Released], list[Unbuildable], list[int]]:
    """Return what follows for the waiting steps of a task.

    That is: those that may now start, with their requests; those whose request cannot be built; and
    the ids of undo steps that are not needed, as nothing was done. Only undo steps start while the
    task is being undone: an undo step once its own step and all that come after it are settled, and
    those of them that can be are undone.
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
    for step in waiting.values():
        if step.name in unsettled or not all(name in ended for name in step.after):
            continue
        try:
            request = resolve(step.request, data, _known(steps))
        except Unresolved as error:
            broken.append(Unbuildable(id=step.id, reason=str(error)))
        else:
            released.append(Released(id=step.id, request=request))
    return released, broken, [step.id for step in needless]


def _unsettled(does: Mapping[str, StepView]) -> set[str]:
    """Return the steps that may still have an effect, and all that one of these comes after.

    A step without an undo step of its own may be at work on what an earlier one did.
    """
    found: set[str] = set()
    fresh = {name for name, step in does.items() if step.state not in ENDED_STEP_STATES}
    while fresh:
        found |= fresh
        fresh = {before for name in fresh for before in does[name].after} - found
    return found


def build(
    step: StepView, steps: Collection[StepView], data: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the request of a step whose template could not be filled before, or None still."""
    try:
        request: dict[str, Any] = resolve(step.request, data, _known(steps))
    except Unresolved:
        return None
    return request


def _known(steps: Collection[StepView]) -> dict[str, Any]:
    """Return what templates may take of a task's steps: results of those done, and keys of all."""
    does = [step for step in steps if step.direction == Direction.DO]
    results: dict[str, Any] = {
        step.name: step.result or {} for step in does if step.state in DONE_STEP_STATES
    }
    results[KEYS] = {
        step.name: step_key(step.task, step.name, step.direction, step.generation) for step in does
    }
    return results


def _needless(done: StepView, undo: StepView) -> bool:
    """Return whether there is nothing to undo: its step was never done.

    Where the service knows of no effect, and the undo needs no result (it goes by key), it is sent
    all the same: a call that is still on its way is then refused when it arrives.
    """
    if done.state != StepState.CANCELLED:
        return False
    own = any(origin == undo.name for origin, *_ in placeholders(undo.request))
    return done.outcome != Outcome.ABSENT or own


def task_state(current: str, steps: Iterable[StepView], *, undoing: bool) -> TaskState:
    """Return the state of a task with these steps; every workflow has a step."""
    states = {step.state for step in steps}
    if StepState.ERROR in states:
        return TaskState.ERROR
    if undoing:
        return TaskState.UNDONE if states <= set(ENDED_STEP_STATES) else TaskState.UNDOING
    if states <= set(DONE_STEP_STATES):
        return TaskState.PROCESSED
    if current == TaskState.PENDING and states <= {StepState.WAITING, StepState.PENDING}:
        return TaskState.PENDING
    return TaskState.PROCESSING
