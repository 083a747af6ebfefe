"""What happens next to a step, in a sentence: decided from rows at hand, no query is made."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ..models import Hold, Step
from ..states import (
    DONE_STEP_STATES,
    FINAL_TASK_STATES,
    Direction,
    GateState,
    StepState,
    TaskState,
)
from ..transitions.local import NO_FUNCTION
from ..waiting import AgentFacts, Reason, StepFacts, Why, why

BADGES = {
    GateState.CLOSED: ("success", "breaker closed"),
    GateState.OPEN: ("warning", "breaker open"),
    GateState.HALF_OPEN: ("warning", "breaker half-open"),
    GateState.RECOVERING: ("info", "recovering"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentView:
    """An agent's gate and the thresholds of its policy; `blocked` says why its steps wait, if so."""

    facts: AgentFacts
    blocked: Why | None
    failure_threshold: int
    undo_threshold: int = 20
    rounds: int = 3

    @property
    def free(self) -> bool:
        """Return whether its steps may go as long as the window has room."""
        return self.blocked is None

    def facts_with(self, in_flight: int) -> AgentFacts:
        """Return what decides about its steps, with so many in flight."""
        return replace(self.facts, in_flight=in_flight)

    @property
    def badge(self) -> tuple[str, str]:
        """Return the colour and word of its circuit breaker."""
        if self.facts.hold:
            return "warning", "held"
        if self.blocked and self.blocked.reason == Reason.PAUSED:
            return "warning", "paused"
        return BADGES[GateState(self.facts.state)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Queued:
    """Where a step that may be claimed stands: what is in flight at its agent, and who is before it."""

    in_flight: int = 0
    urgent: int = 0
    ahead: int = 0


NOT_QUEUED = Queued()


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """A sentence; where it names a moment, that stands between `text` and `after`."""

    text: str
    at: datetime | None = None
    after: str = ""


# Which of a task's steps says most about where the task stands: the first of these that it has.
TELLING = (StepState.ERROR, StepState.PROCESSING, StepState.PENDING, StepState.WAITING)

ENDINGS = {
    StepState.PROCESSED: "done",
    StepState.SKIPPED: "done by hand",
    StepState.CANCELLED: "never to run: the task is undone",
    StepState.ERROR: "an operator must decide",
}


def of_step(
    step: Step,
    *,
    done: Collection[str],
    agents: Mapping[str, AgentView],
    now: datetime,
    hold: Hold | None = None,
    place: Queued = NOT_QUEUED,
) -> Outlook:
    """Return what happens next to `step`; `done` names the steps of its task that are.

    `hold` is the hold in force on its task, or on this step of every task; `place` is where it
    stands while it may be claimed.
    """
    if step.process_state == StepState.WAITING:
        missing = [name for name in step.after if name not in done]
        return Outlook(text=f"waits for {_listed(missing)}")
    if step.process_state == StepState.PENDING:
        agent = agents.get(step.agent)
        return _of_pending(step, agent, why_step(step, agent, now, hold, place))
    if step.process_state == StepState.PROCESSING:
        return _of_processing(step, now)
    if step.process_state == StepState.ERROR and step.mend_by is not None:
        return Outlook(text="waits to be mended; its task is undone", at=step.mend_by)
    return Outlook(text=ENDINGS[StepState(step.process_state)])


def why_step(
    step: Step, agent: AgentView | None, now: datetime, hold: Hold | None, place: Queued
) -> Why:
    """Return why a pending step waits, from rows at hand."""
    held = held_because(hold) if hold else "it is held" if step.held_by_id is not None else ""
    facts = StepFacts(
        hold=held,
        run_after=step.run_after,
        alone=step.alone,
        urgent=place.urgent,
        ahead=place.ahead,
    )
    of_agent = agent.facts_with(place.in_flight) if agent else None
    return why(facts, of_agent, now)


def _of_pending(step: Step, agent: AgentView | None, found: Why) -> Outlook:
    text = found.sentence(step.agent)
    if step.error_code == NO_FUNCTION and step.run_after:
        text = "waits: no code that ran declares how it is computed; looked at again"
        return Outlook(text=text, at=step.run_after)
    if found.reason == Reason.RETRY:
        return Outlook(text=text, at=found.at, after=_next_attempt(step, agent))
    if found.reason in {Reason.PAUSED, Reason.BREAKER} and found.at:
        return Outlook(text=text, at=found.at, after=f" ({found.text})")
    return Outlook(text=text, at=found.at)


def _of_processing(step: Step, now: datetime) -> Outlook:
    if step.locked_by is None:
        why = step.error_code or step.outcome or "no reply"
        return Outlook(text=f"failed ({why}): the supervisor decides whether to retry")
    if step.complete_by and step.complete_by > now:
        work = "is asked whether it was done" if step.settling else "is at work"
        return Outlook(text=f"{step.agent} {work}, its reply is due", at=step.complete_by)
    return Outlook(text="no reply came in time: the supervisor decides whether to retry")


def _next_attempt(step: Step, agent: AgentView | None) -> str:
    """Return which of the attempts comes next that a policy grants before it decides otherwise."""
    number = f", attempt {step.failure_count + 1}"
    if agent is None:
        return number
    backward = step.settling or step.direction == Direction.UNDO
    number += f" of {agent.undo_threshold if backward else agent.failure_threshold}"
    if step.rounds:
        number += f", extended wait {step.rounds} of {agent.rounds}"
    return number


def held_because(hold: Hold) -> str:
    """Return who holds, and why."""
    return f"held by {hold.actor} because: {hold.reason}"


def telling_step(steps: Sequence[Step]) -> int | None:
    """Return the index of the step that says where its task stands; None when all are done."""
    for state in TELLING:
        for index, step in enumerate(steps):
            if step.process_state == state:
                return index
    return None


def of_task(
    state: str, step: str, outlook: Outlook | None, others: int, standing: Sequence[str] = ()
) -> Outlook:
    """Return what happens next to a task, from its most telling step's name and outlook.

    `others` is how many more of its steps are in error, at work or about to be; `standing` are
    those that were done and cannot be undone.
    """
    if state in FINAL_TASK_STATES:
        return Outlook(text=f"Nothing more: {_ended(state, standing)}")
    if outlook is None:
        return Outlook(text="Its state is about to change")
    plural = "step is" if others == 1 else "steps are"
    more = f"; {others} more {plural} under way" if others else ""
    if state == TaskState.ERROR and outlook.at is not None:
        return Outlook(text=f"“{step}” {outlook.text}", at=outlook.at, after=more)
    if state == TaskState.ERROR:
        return Outlook(text=f"An operator must decide: the step “{step}” failed{more}")
    return Outlook(text=f"“{step}” {outlook.text}", at=outlook.at, after=outlook.after + more)


def _ended(state: str, standing: Sequence[str]) -> str:
    if state == TaskState.PROCESSED:
        return "every step is done"
    if not standing:
        return "every effect was undone"
    verb = "stands" if len(standing) == 1 else "stand"
    return f"all was undone but {_listed(standing)}, which {verb}"


def standing_names(steps: Collection[Step]) -> list[str]:
    """Return the names of the steps that were done and can never be undone."""
    return [
        step.name for step in steps if step.irreversible and step.process_state in DONE_STEP_STATES
    ]


def done_names(steps: Collection[Step]) -> set[str]:
    """Return the names of the steps that others need not wait for any more."""
    return {step.name for step in steps if step.process_state in DONE_STEP_STATES}


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(f"“{name}”" for name in names) or "its turn"
    return ", ".join(f"“{name}”" for name in names[:-1]) + f" and “{names[-1]}”"
