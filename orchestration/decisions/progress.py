"""What follows for a task when some of its steps change: pure decisions over plain data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Self

from msgspec import Struct, structs

from ..payloads.placeholders import Loads
from ..states import (
    ENDED_STEP_STATES,
    LOCAL,
    Direction,
    Outcome,
    StepState,
    TaskState,
)
from .flow import CHILDREN, Flow


class Refusal(Enum):
    """Why a write did not land: a normal outcome."""

    NO_SUCH_STEP = "the step does not exist"
    NOT_PROCESSING = "the step is not being processed any more"
    OTHER_ATTEMPT = "the reply is for another attempt"
    OTHER_DISPATCH = "the reply is for a dispatch that is not in the state store"
    ALREADY_ANSWERED = "this attempt was answered already"
    NOT_IN_ERROR = "the step is not in error"
    NOT_BUILDABLE = "the request still cannot be built"
    NO_TIME = "it is still not known when it may begin: resubmitted by itself, it begins now"
    TOO_EARLY = "its time has not come"
    NO_SUCH_TASK = "the task does not exist"
    NO_SUCH_WORKFLOW = "its workflow is not declared any more: it can only be undone"
    IN_DOUBT = (
        "the effect may have happened, so the input cannot be changed: the service recognises "
        "only the same request with the same key"
    )
    KEY_FORGOTTEN = (
        "the effect may have happened, and the service no longer remembers the key: check with "
        "the service, then record what was done, or that nothing was done"
    )
    INVALID = "the input or result is not valid"
    NOT_UNDOABLE = "it is being undone or was undone"
    IRREVERSIBLE = "a step that was done, or may have been done, is irreversible"
    HELD_ALREADY = "it is already on hold"
    NOT_HELD = "it is not on hold"
    CHANGED = "it has changed since it was seen"
    ENDED = "it has ended"
    UNDOING = "the task is being undone"
    TAKEN = "a step has used a value that was to change"
    REPORTED = "its result has been reported"
    UNKNOWN_ID = "no step has been accepted under this id"
    HAS_CHILDREN = "its child tasks end it: undo these, or the task"
    NOTHING_TO_DO = "no item of the selection is eligible"
    GROWN = "the selection has grown since the dry run: refresh the dry run"
    TOO_MANY = "the selection is too large: narrow it"
    SAME_PERSON = (
        "who asked for an operation cannot approve it, by this account or one set up by it"
    )
    NOT_SIGNED_IN = "an approval needs a user who has signed in to the dashboard"
    NOT_PERMITTED = "the account lacks the permission, or is not active any more"
    SAME_PRIORITY = "the priority is already set to this value"
    CLOSED = "an operator closed it"
    NOT_WAITING = "the agent waits neither for a probe nor for the end of a pause"


class StepView(Struct, frozen=True, gc=False):
    """What decisions need of a step. Many are made: as a struct at a fifth of a dataclass's cost."""

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
    dispatched_at: datetime | None = None
    own_trouble: bool = False
    action: str = ""
    loads: Loads | None = None
    error_code: str = ""
    alert_id: int | None = None
    patience: Mapping[str, Any] | None = None
    done_by: str = ""
    flow: Flow | None = None

    @property
    def makes_children(self) -> bool:
        """Whether it is done by child tasks, or was to be: its undo undoes these."""
        return self.agent == LOCAL and self.undo_action == CHILDREN

    @property
    def dispatch(self) -> int:
        """The number of its last dispatch: when that was, in microseconds of Unix time."""
        if self.dispatched_at is None:
            return 0
        return (self.dispatched_at - EPOCH) // timedelta(microseconds=1)

    def altered(self, **fields: Any) -> Self:
        """Return the step with other values of some fields."""
        return structs.replace(self, **fields)


EPOCH = datetime.fromtimestamp(0, UTC)
RENAMED = {"state": "process_state", "task": "task_id"}  # columns not called as a view's fields are


@dataclass(frozen=True, kw_only=True, slots=True)
class StepPlan:
    """A step to be: pending, with its request built, waiting with a template, or skipped.

    `until` is of a first step that waits for its time: that, and whether it is one of the calendar.
    """

    name: str
    agent: str
    action: str
    after: Sequence[str]
    request: Mapping[str, Any]
    state: StepState = StepState.WAITING
    direction: str = Direction.DO
    undo_action: str = ""
    undo_request: Mapping[str, Any] | None = None
    irreversible: str = ""
    charges: Mapping[str, Any] | None = None
    loads: Loads = ()
    flow: Flow | None = None
    until: tuple[datetime, bool] | None = None


def refuse_reply(
    step: StepView | None, attempt: int, generation: int = 0, dispatch: int = 0
) -> Refusal | None:
    """Return why a reply may change nothing, or None when it may (the fence).

    Not because its complete-by time has passed: until the supervisor counts the attempt, no other
    instance was given the step, and the agent sent the reply in time (decision 34).

    A failover may lose a dispatch whose numbers are given again: the key's generation and the
    dispatch itself must match too. 0 is of an agent that does not report them.
    """
    if step is None:
        return Refusal.NO_SUCH_STEP
    if step.attempt != attempt:
        return Refusal.OTHER_ATTEMPT
    if generation not in {0, step.generation} or dispatch not in {0, step.dispatch}:
        return Refusal.OTHER_DISPATCH
    if step.state != StepState.PROCESSING:
        return Refusal.NOT_PROCESSING
    if step.locked_by is None:
        return Refusal.ALREADY_ANSWERED
    return None


def after_reply(
    step: StepView,
    outcome: str,
    result: Mapping[str, Any],
    *,
    undoing: bool,
    in_doubt: bool | None = None,
    code: str = "",
) -> StepView:
    """Return the step as it is once a reply to its attempt is recorded.

    A refusal that its workflow passes over has the step skipped, unless it may have been done. What is
    neither done nor refused stays processing, unlocked, for the supervisor to count. While
    it is being undone, a step that had no effect is cancelled. `in_doubt` is what the
    reply says of it, if anything.
    """
    doubt = _doubt_after(step, outcome, in_doubt)
    state, unwanted = step.state, undoing and step.direction == Direction.DO
    if outcome == Outcome.DONE:
        state = StepState.PROCESSED
    elif outcome == Outcome.LATER:  # while it is being undone, its undo is sent instead
        state = StepState.CANCELLED if unwanted else StepState.AWAITING
    elif _is_passed(step, outcome, code, doubt=doubt, undoing=undoing):
        state = StepState.SKIPPED
    elif unwanted and not doubt and outcome in {Outcome.REJECTED, Outcome.ABSENT}:
        state = StepState.CANCELLED
    elif outcome == Outcome.REJECTED:
        state = StepState.ERROR
    stored = result if outcome in {Outcome.DONE, Outcome.LATER} else step.result
    return step.altered(
        locked_by=None, outcome=outcome, in_doubt=doubt, state=state, result=stored, error_code=code
    )


def _is_passed(step: StepView, outcome: str, code: str, *, doubt: bool, undoing: bool) -> bool:
    """Return whether a task goes on without a step that was refused."""
    refused = outcome == Outcome.REJECTED and not doubt and not undoing
    return refused and step.flow is not None and step.flow.passes(code)


def outcome_of_repeat(outcome: str) -> str:
    """Return how an attempt ended whose call was lost, by how its repeat in the attempt ended.

    That the repeat did nothing does not resolve the doubt about the call before it.
    """
    return Outcome.UNKNOWN.value if outcome == Outcome.TRANSIENT else outcome


def _doubt_after(step: StepView, outcome: str, reported: bool | None) -> bool:
    """Return whether the effect may have happened under the step's key, after one more reply.

    An attempt only adds doubt, unless its answer is what the service keeps under the key. A refusal
    by itself is not: it may have been made before the service looked at the key.
    """
    if outcome in {Outcome.DONE, Outcome.LATER}:
        return False
    if outcome == Outcome.ABSENT:
        return step.outcome == Outcome.UNKNOWN  # it showed while this attempt was out (`proven`)
    if outcome == Outcome.UNKNOWN:
        return True
    return step.in_doubt if reported is None else reported


def waits_until(step: StepView, now: datetime) -> str | None:
    """Return until when the rejection of a step is waited for, as it is stored, or None if it is not.

    A person decides that when resubmitting the step, for one code; a step that may have been done is not
    tried again under a new key.
    """
    patience = step.patience
    if patience is None or step.in_doubt or patience["code"] != step.error_code:
        return None
    until = str(patience["until"])
    return until if datetime.fromisoformat(until) > now else None


def task_state(current: str, steps: Iterable[StepView | StepPlan], *, undoing: bool) -> TaskState:
    """Return the state of a task with these steps; every workflow has a step."""
    states = {step.state for step in steps}
    if StepState.ERROR in states:
        return TaskState.ERROR
    if undoing:
        return TaskState.UNDONE if states <= set(ENDED_STEP_STATES) else TaskState.UNDOING
    if states <= set(ENDED_STEP_STATES):  # cancelled ones were undone with a part
        return TaskState.PROCESSED
    if current == TaskState.PENDING and states <= {StepState.WAITING, StepState.PENDING}:
        return TaskState.PENDING
    return TaskState.PROCESSING
