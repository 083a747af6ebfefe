"""What happens next to a step, in a sentence: decided from rows already read, without a query."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten

from ..decisions import flow_words
from ..decisions.recovery import Thresholds
from ..decisions.wait_reasons import Reason, StepFacts, Why, why
from ..models import Hold, Step, Wait
from ..models.hold import HoldCause
from ..states import (
    FINAL_TASK_STATES,
    SATISFIED_STEP_STATES,
    Direction,
    StepState,
    TaskState,
)
from ..transitions.local_steps import NO_FUNCTION
from .agent_view import AgentView
from .awaited import awaited, waits_for_time


@dataclass(frozen=True, kw_only=True, slots=True)
class Queued:
    """The place of a step that may be claimed: what is in flight at its agent, and what is before it."""

    in_flight: int = 0
    urgent: int = 0
    ahead: int = 0


UNKNOWN = "?"  # did it by hand, in what an earlier release wrote
NOT_QUEUED = Queued()


@dataclass(frozen=True, kw_only=True, slots=True)
class NextStep:
    """A sentence; where it names a moment, that stands between `text` and `after`.

    `agent` is named where all its steps wait for the same: a hold, a worker, a pause, its breaker.
    """

    text: str
    at: datetime | None = None
    after: str = ""
    agent: str = ""


# Which of a task's steps says most about where the task stands: the first of these that it has.
TELLING = (
    *(StepState.ERROR, StepState.PROCESSING, StepState.PENDING, StepState.AWAITING),
    StepState.WAITING,
)

# reasons to wait that all steps of an agent have
OF_AGENT = (Reason.AGENT_HOLD, Reason.NO_WORKER, Reason.PAUSED, Reason.BREAKER)
LONGEST_CONDITION = 160  # characters in a sentence; the task's page has all of it beside
ENDINGS = {
    StepState.PROCESSED: "done",
    StepState.CANCELLED: "cancelled by the undo of the task",
    StepState.ERROR: "waiting for an operator",
}


def of_step(  # noqa: PLR0913 - a row, and what was read beside it
    step: Step,
    *,
    workflow: str,
    done: Collection[str],
    agents: Mapping[str, AgentView],
    now: datetime,
    hold: Hold | None = None,
    place: Queued = NOT_QUEUED,
    wait: Wait | None = None,
) -> NextStep:
    """Return what happens next to `step`; `done` names the steps of its task that are.

    `hold` is the hold in force on its task, or on this step of every task; `place` is where it
    stands while it may be claimed; `wait` is what it awaits, or its time, if it does.
    """
    if step.process_state == StepState.WAITING:
        return _of_waiting(step, done, wait, now)
    if step.process_state == StepState.PENDING:
        agent = agents.get(step.agent)
        limits = agent.of_step(workflow, step.name) if agent else None
        return _of_pending(step, limits, why_step(step, agent, now, hold, place))
    if step.process_state == StepState.PROCESSING:
        return _of_processing(step, now)
    if step.process_state == StepState.AWAITING:
        return _of_awaiting(step, wait)
    return _of_ended(step)


def _of_waiting(step: Step, done: Collection[str], wait: Wait | None, now: datetime) -> NextStep:
    needed = _if_needed(step)
    if waits_for_time(step) and wait and wait.due_at:
        if wait.due_at > now:
            return NextStep(text="begins", at=wait.due_at, after=needed)
        return NextStep(text=f"begins now{needed}")
    missing = [name for name in step.after if name not in done]
    return NextStep(text=f"waiting for {_listed(missing)}{needed}")


def _of_ended(step: Step) -> NextStep:
    if step.process_state == StepState.ERROR and step.resolve_by is not None:
        return NextStep(text="waiting for a fix; the task will be undone", at=step.resolve_by)
    if step.process_state == StepState.SKIPPED:
        flow = flow_words.stored(step.flow)
        return NextStep(text=flow_words.why_skipped(flow, step.outcome, step.error_code))
    if step.done_by:
        by = "" if step.done_by == UNKNOWN else f" by {step.done_by}"
        return NextStep(text=f"done by hand{by}")
    return NextStep(text=ENDINGS[StepState(step.process_state)])


def _if_needed(step: Step) -> str:
    """Return the condition of a step, if it has one, as a part of a sentence."""
    words = flow_words.condition(flow_words.stored(step.flow))
    return f"; needed if {shorten(words, LONGEST_CONDITION, placeholder=' …')}" if words else ""


def why_step(
    step: Step, agent: AgentView | None, now: datetime, hold: Hold | None, place: Queued
) -> Why:
    """Return why a pending step waits, from rows already read."""
    held = held_because(hold) if hold else "on hold" if step.held_by_id is not None else ""
    facts = StepFacts(
        hold=held,
        run_after=step.run_after,
        isolated=step.isolated,
        urgent=place.urgent,
        ahead=place.ahead,
    )
    of_agent = agent.facts_with(place.in_flight) if agent else None
    return why(facts, of_agent, now)


def _of_pending(step: Step, limits: Thresholds | None, why: Why) -> NextStep:
    text = why.sentence(step.agent)
    if step.error_code == NO_FUNCTION and step.run_after:
        text = "waiting, no running release declares the function of this step; next check"
        return NextStep(text=text, at=step.run_after)
    if why.reason == Reason.RETRY and not step.attempt:
        return NextStep(text="begins" if why.at else "begins now", at=why.at)
    if why.reason == Reason.RETRY:
        return NextStep(text=text, at=why.at, after=_next_attempt(step, limits))
    shared = step.agent if why.reason in OF_AGENT else ""
    if why.reason in {Reason.PAUSED, Reason.BREAKER} and why.at:
        return NextStep(text=text, at=why.at, after=f" ({why.text})", agent=shared)
    return NextStep(text=text, at=why.at, agent=shared)


def _of_processing(step: Step, now: datetime) -> NextStep:
    if step.locked_by is None:
        why = step.error_code or step.outcome or "no reply"
        return NextStep(text=f"failed ({why}); the supervisor will decide whether to retry")
    if step.complete_by and step.complete_by > now:
        work = (
            "is checking whether the step was done"
            if step.probing_outcome
            else "is processing the step"
        )
        return NextStep(text=f"{step.agent} {work}; reply due", at=step.complete_by)
    return NextStep(
        text="no reply before the deadline; the supervisor will decide whether to retry"
    )


def _of_awaiting(step: Step, wait: Wait | None) -> NextStep:
    text = f"waits for {awaited(step)}"
    if wait is None or wait.ends_by is None:
        return NextStep(text=text)
    return NextStep(text=f"{text}, due", at=wait.ends_by)


def _next_attempt(step: Step, limits: Thresholds | None) -> str:
    """Return which of the attempts comes next that a policy grants before it decides otherwise."""
    number = f", attempt {step.failure_count + 1}"
    if limits is None:
        return number
    number += f" of {most_failures(step, limits)}"
    if step.extended_waits:
        number += f", extended wait {step.extended_waits} of {limits.max_extended_waits}"
    return number


def most_failures(step: Step, limits: Thresholds) -> int:
    """Return after how many failures of a step a policy decides otherwise than to retry."""
    backward = step.probing_outcome or step.direction == Direction.UNDO
    return limits.undo_threshold if backward else limits.failure_threshold


def held_because(hold: Hold) -> str:
    """Return who holds, and why unless a person typed that: such a reason may name anyone.

    This becomes part of sentences for every reader; pages write what was typed beside it, by right.
    """
    by = f"held by {hold.actor}"
    return by if hold.cause == HoldCause.HAND else f"{by} ({hold.reason})"


def telling_step(steps: Sequence[Step]) -> int | None:
    """Return the index of the step that says where its task stands; None when all are done."""
    for state in TELLING:
        for index, step in enumerate(steps):
            if step.process_state == state and (state != StepState.WAITING or waits_for_time(step)):
                return index
    waiting = (index for index, each in enumerate(steps) if each.process_state == StepState.WAITING)
    return next(waiting, None)


def of_task(
    state: str,
    step: str,
    outlook: NextStep | None,
    others: int,
    steps: Collection[Step] = (),
) -> NextStep:
    """Return what happens next to a task, from its most telling step's name and outlook.

    `others` is how many more of its `steps` are in error, at work or about to be.
    """
    if state in FINAL_TASK_STATES:
        return NextStep(text=f"Ended: {_ended(state, steps)}")
    if outlook is None:
        return NextStep(text="The state is about to change")
    plural = "step" if others == 1 else "steps"
    more = f"; {others} more {plural} in progress" if others else ""
    if state == TaskState.ERROR and outlook.at is not None:
        return NextStep(text=f"“{step}”: {outlook.text}", at=outlook.at, after=more)
    if state == TaskState.ERROR:
        return NextStep(text=f"“{step}” failed: waiting for an operator{more}")
    return NextStep(text=f"“{step}”: {outlook.text}", at=outlook.at, after=outlook.after + more)


def _ended(state: str, steps: Collection[Step]) -> str:
    if state == TaskState.PROCESSED:
        skipped = sum(step.process_state == StepState.SKIPPED for step in steps)
        rest = f"; {skipped} {'was' if skipped == 1 else 'were'} not needed" if skipped else ""
        undone = sum(step.direction == Direction.UNDO for step in steps)
        rest += f"; {undone} {'was' if undone == 1 else 'were'} undone" if undone else ""
        return f"all steps are done{rest}"
    if not (standing := _standing_names(steps)):
        return "all known effects were undone"
    return f"all known effects were undone except {_listed(standing)}"


def _standing_names(steps: Collection[Step]) -> list[str]:
    """Return the names of the steps that were done and can never be undone."""
    return [
        step.name
        for step in steps
        if step.irreversible and step.process_state == StepState.PROCESSED
    ]


def done_names(steps: Collection[Step]) -> set[str]:
    """Return the names of the steps that others need not wait for any more."""
    return {step.name for step in steps if step.process_state in SATISFIED_STEP_STATES}


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(f"“{name}”" for name in names) or "other steps"
    return ", ".join(f"“{name}”" for name in names[:-1]) + f" and “{names[-1]}”"
