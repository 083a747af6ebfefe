"""What follows for a task when some of its steps change: pure decisions over plain data."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .states import DONE_STEP_STATES, StepState, TaskState
from .workflow import Unresolved, Workflow, require_fields, resolve


class Refusal(Enum):
    """Why a write did not land: a normal outcome."""

    NO_SUCH_STEP = "there is no such step"
    NOT_PROCESSING = "the step is not being processed any more"
    OTHER_ATTEMPT = "the reply is for another attempt"
    ALREADY_ANSWERED = "this attempt was answered already"
    NOT_IN_ERROR = "the step is not in error"
    NOT_BUILDABLE = "its request still cannot be built"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepView:
    """What decisions need of a step."""

    id: int
    name: str
    agent: str
    state: str
    after: Sequence[str]
    attempt: int
    locked_by: str | None
    request: Mapping[str, Any]
    result: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StepPlan:
    """A step of a new task: ready at once, with its request built, or waiting with a template."""

    name: str
    agent: str
    action: str
    after: Sequence[str]
    request: Mapping[str, Any]
    ready: bool


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
    """Return the steps of a new task; raise `Unresolved` if `data` lacks a field that any of them takes.

    The templates of waiting steps are kept as they are: a value of the input is put in only when
    the request is built, so that no input can pose as a placeholder.
    """
    plans = []
    for step in workflow.steps:
        require_fields(step.request, data)
        ready = not step.after
        plans.append(
            StepPlan(
                name=step.name,
                agent=step.agent,
                action=step.action,
                after=step.after,
                request=resolve(step.request, data, {}) if ready else step.request,
                ready=ready,
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


def release(
    steps: Collection[StepView], data: Mapping[str, Any]
) -> tuple[list[Released], list[Unbuildable]]:
    """Return the waiting steps that may now start, with their requests, and those that cannot."""
    done = {step.name: step.result or {} for step in steps if step.state in DONE_STEP_STATES}
    released: list[Released] = []
    broken: list[Unbuildable] = []
    for step in steps:
        if step.state != StepState.WAITING or not all(name in done for name in step.after):
            continue
        try:
            request = resolve(step.request, data, done)
        except Unresolved as error:
            broken.append(Unbuildable(id=step.id, reason=str(error)))
        else:
            released.append(Released(id=step.id, request=request))
    return released, broken


def task_state(current: str, step_states: Iterable[str]) -> TaskState:
    """Return the state of a task whose steps are in `step_states`; every workflow has a step."""
    states = set(step_states)
    if StepState.ERROR in states:
        return TaskState.ERROR
    if states <= set(DONE_STEP_STATES):
        return TaskState.PROCESSED
    if current == TaskState.PENDING and states <= {StepState.WAITING, StepState.PENDING}:
        return TaskState.PENDING
    return TaskState.PROCESSING
