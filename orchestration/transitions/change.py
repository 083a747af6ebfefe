"""What is decided about one locked task: its steps as they are then, and all that is to be written."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from ..alerting.alerts import AlertReport
from ..applications.outbox import StatusUpdate
from ..decisions.fairness import Arrival, Line
from ..decisions.progress import StepView
from ..decisions.readiness import has_time
from ..incidents.fingerprint import Cause, normalise
from ..incidents.tallies import StepFailure
from ..models import Event
from ..models.history import EventKind
from ..models.inbox import StatusKind
from ..states import Direction, Outcome, StepState, TaskState
from . import moves
from .new_steps import NewStep
from .step_update import Move, StepUpdate
from .waits import NewTime, NewWait, Until

# states of a step that applications are notified of; a failure is reported for the whole task
REPORTED = {StepState.PROCESSED, StepState.SKIPPED}


@dataclass(frozen=True, kw_only=True, slots=True)
class FinalFailure:
    """Why a step goes to error, and how many failures this adds to its count.

    `resolve_within` is the number of seconds after which its task is undone unless it was resolved;
    `incident` is where the failure was counted before.
    """

    step: int
    code: str
    message: str
    attempt: int
    failures: int = 0
    resolve_within: float | None = None
    incident: int | None = None

    @property
    def line(self) -> str:
        """Return the code and the message in one line."""
        return f"{self.code}: {self.message}".strip(": ")


class Ready(NamedTuple):
    """A waiting step that may start, with its request, how it joins its line, and its turn there.

    It has none before the line was read.
    """

    change: "Change"
    step: StepView
    request: Mapping[str, Any]
    arrival: Arrival
    turn: int | None = None


@dataclass(kw_only=True)
class Change:
    """One locked task, and what is decided about it and not written yet.

    `steps` are as they will be. `task_states` are the states that it goes through, `failures` attempts to
    be counted, by step: a move whose `incident` is None gets that of its step's.
    """

    id: UUID
    workflow: str
    reference: str
    data: dict[str, Any]
    state: str
    undoing: bool
    reply_to: str = ""
    owner_application: str = ""
    notify_steps: bool = False
    priority: int = 0
    fairness_key: str = ""
    parent: int | None = None  # the step whose child it is
    was_held: bool | None = None  # whether a hold on it is in force; None: there never was one
    steps: dict[int, StepView] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    new_steps: list[NewStep] = field(default_factory=list)
    ready: list["Ready"] = field(default_factory=list)  # to be written as pending, or claimed
    followed: int = -1  # how many moves there were when it was decided what follows from them
    final_failures: list[FinalFailure] = field(default_factory=list)
    task_states: list[tuple[str, TaskState]] = field(default_factory=list)
    updates: list[StatusUpdate] = field(default_factory=list)
    failures: dict[int, StepFailure] = field(default_factory=dict)
    opened: list[NewWait] = field(default_factory=list)  # what steps await from now on
    closed: set[int] = field(default_factory=set)  # steps that await nothing any more
    times: dict[int, bool] = field(default_factory=dict)  # whether a step's time has come, if known
    timed: list[NewTime] = field(default_factory=list)  # steps that wait for their time from now on
    begun: set[int] = field(default_factory=set)  # steps that wait for no time any more
    accepted: list[tuple[StepView, str]] = field(default_factory=list)  # and what services call it
    alarms: list[AlertReport] = field(default_factory=list)
    recovered: list[str] = field(default_factory=list)  # fingerprints of alerts to close
    events: list[Event] = field(default_factory=list)

    def undoes(self, step: StepView) -> bool:
        """Return whether a step is being undone, or undoes one: with its whole task, or with a part of it."""
        return self.undoing or step.name in {
            other.name for other in self.steps.values() if other.direction == Direction.UNDO
        }

    def notify_of_part(self, names: Collection[str]) -> None:
        """Have the application get the names of steps that are undone alone."""
        detail = {"steps": list(names)}
        kind = StatusKind.UNDOING_PART
        self.updates.append(StatusUpdate(task=self.id, kind=kind, detail=detail))

    def move(
        self,
        update: StepUpdate,
        step: StepView,
        *,
        arrival: Arrival | None = None,
        **values: Any,
    ) -> None:
        """Have a step updated; `step` is as it is then."""
        self.moves.append(Move(update, self.steps[step.id], values, arrival))
        self.set(step)

    def release(self, ready: Ready) -> None:
        """Have a step that is ready become pending with what else is written."""
        self.ready.remove(ready)
        values = {"request": ready.request}
        self.moves.append(Move(moves.RELEASED, ready.step, values, ready.arrival))

    def set(self, step: StepView) -> None:
        """Note what a step is now; an application that wants those of steps gets an update."""
        before = self.steps.get(step.id)
        self.steps[step.id] = step
        if before and before.state == StepState.AWAITING != step.state:
            self.closed.add(step.id)
        if before and before.state == StepState.WAITING != step.state and has_time(before):
            self.begun.add(step.id)
        if self.notify_steps and before and before.state != step.state and step.state in REPORTED:
            detail = {"step": step.name, "direction": step.direction, "state": step.state}
            self.updates.append(StatusUpdate(task=self.id, kind=StatusKind.STEP, detail=detail))

    def cancel(self, step: StepView) -> None:
        """Have a step cancelled."""
        doubt = step.in_doubt and step.outcome != Outcome.LATER  # what was accepted is undone
        cancelled = step.altered(state=StepState.CANCELLED, locked_by=None, in_doubt=doubt)
        self.move(moves.CANCELLED, cancelled, incident=None)

    def wait_for(self, time: NewTime) -> None:
        """Have a step wait for its time; its task's deadline is put off by that."""
        self.times[time.step.id] = False
        self.timed.append(time)
        self.move(moves.TIMED, time.step, seconds=time.seconds)

    def await_result(self, step: StepView, request: Mapping[str, Any], until: Until) -> None:
        """Have a step await what a person or a signal brings."""
        awaiting = step.altered(state=StepState.AWAITING, request=request, error_code="")
        self.move(moves.AWAITED, awaiting, request=request)
        self.opened.append(NewWait(step=awaiting, until=until))

    def skip(self, step: StepView) -> None:
        """Have a step skipped: it is not needed."""
        self.move(moves.SKIPPED, step.altered(state=StepState.SKIPPED))

    def fail(self, failure: FinalFailure) -> None:
        """Have a step go to error; one that fails without an attempt is counted by this."""
        self.final_failures.append(failure)
        step = self.steps[failure.step]
        if failure.incident is None and failure.step not in self.failures:
            cause = self.cause(step, "", failure.code, failure.message)
            self.count(step, cause, failure.message)
        self.move(
            moves.FAILED,
            step.altered(state=StepState.ERROR, locked_by=None),
            code=failure.code[:100],
            message=failure.message,
            alert=None,
            incident=None,
            failures=failure.failures,
            resolve_within=failure.resolve_within,
        )

    def count(self, step: StepView, cause: Cause, message: str) -> None:
        """Have a failed attempt of a step counted for the incident of its cause."""
        self.failures[step.id] = StepFailure(step=step.id, cause=cause, message=message)

    def enter(self, state: TaskState) -> None:
        """Have the task go to a state."""
        self.task_states.append((self.state, state))
        self.state = state

    def note(
        self,
        step: StepView | None,
        kind: EventKind,
        *,
        by: str,
        reason: str,
        operation: int | None = None,
        **detail: Any,
    ) -> Event:
        """Add a line of history about the task, or one of its steps."""
        event = Event(
            task_id=self.id,
            step_id=step.id if step else None,
            kind=kind,
            actor=by,
            attempt=step.attempt if step else None,
            reason=reason,
            operation_id=operation,
            detail=detail,
        )
        self.events.append(event)
        return event

    def cause(self, step: StepView, outcome: str, code: str, message: str) -> Cause:
        """Return the cause that a step's failure shares with others: its fingerprint makes the incident."""
        return Cause(
            workflow=self.workflow,
            step=step.name,
            direction=step.direction,
            agent=step.agent,
            outcome=outcome,
            code=code[:100],
            message=normalise(message),
        )

    def arrival(self, step: StepView) -> Arrival:
        """Return how a released step joins its agent's line: a later one of the same task goes next.

        So tasks that have begun end before others of their fairness key begin.
        """
        been_there = any(
            other.agent == step.agent and other.state != StepState.WAITING
            for other in self.steps.values()
        )
        return Arrival(self.line(step), again=been_there, begun=been_there)

    def next_in_line(self, step: StepView) -> Arrival:
        """Return how a step that becomes pending again joins its line: right behind the head.

        Its old turn may be long past: with it, it would go before all waiting steps of others.
        """
        return Arrival(self.line(step), again=True)

    def line(self, step: StepView) -> Line:
        """Return the line that a step stands in while it is pending."""
        return Line(step.agent, self.priority, self.fairness_key)
