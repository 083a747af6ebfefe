"""Why a pending step waits: one answer, for pages, alerts and metrics alike. Pure decisions."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from ..states import GateState

MOST_AHEAD = 1_000  # others that go before, as far as they are counted
FAILED = "too many calls failed"


class Reason(StrEnum):
    """Why a pending step is not claimed."""

    HOLD = "hold"  # on its task, or on it in every task
    AGENT_HOLD = "agent_hold"  # on its agent, or on everything
    NO_WORKER = "no_worker"  # nothing serves its agent's queue
    RETRY = "retry"  # the time of its next attempt has not come
    PAUSED = "paused"  # the service asked for a pause
    BREAKER = "breaker"  # its agent's circuit breaker lets little through, or nothing
    ISOLATED = "isolated"  # it goes alone, and another such step is in flight
    PRIORITY = "priority"  # steps of a higher priority go before it
    KEY = "key"  # others of its fairness key are before it
    WINDOW = "window"  # as many requests are in flight as may be
    RATE = "rate"  # as many were sent lately as may be
    TURN = "turn"  # nothing: it is claimed as a scheduler comes to it


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentFacts:
    """The facts that decide whether steps of an agent are claimed.

    `hold` says who holds the agent, or everything, and why; it is `unserved` where that is for want
    of a worker. `rate_at` is when its rate lets the next request through, if that has to wait.
    """

    window: int
    state: str
    hold: str = ""
    unserved: bool = False
    paused_until: datetime | None = None
    probe_at: datetime | None = None
    allowance: int = 0
    in_flight: int = 0
    rate_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFacts:
    """What decides whether one pending step is claimed; `hold` says who holds it, and why.

    `urgent` is how many of a higher priority wait, and `ahead`, how many of its key go before it.
    """

    hold: str = ""
    run_after: datetime | None = None
    isolated: bool = False
    urgent: int = 0
    ahead: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Why:
    """The reason, in words; `at` is when `then` happens by itself, if that is known.

    `state` is the breaker's, if that is the reason.
    """

    reason: Reason
    text: str
    at: datetime | None = None
    then: str = ""
    state: str = ""

    def sentence(self, agent: str) -> str:
        """Return what a step of `agent` does; where `at` is known, up to that time."""
        match self.reason:
            case Reason.RETRY:
                return "next attempt" if self.at else "next attempt now"
            case Reason.AGENT_HOLD | Reason.NO_WORKER:
                return f"waiting, {agent} is {self.text}"
            case Reason.PAUSED:
                return f"waiting, {agent} is paused, {self.then}"
            case Reason.BREAKER:
                breaker = f"waiting, the circuit breaker of {agent} is {self.state}"
                return f"{breaker}, {self.then}" if self.at else f"{breaker} ({self.text})"
            case Reason.RATE if self.at:
                return f"waiting, {self.text}, {self.then}"
        return f"waiting, {self.text}"


def why_agent(agent: AgentFacts, now: datetime) -> Why | None:
    """Return why the steps of an agent wait, whichever they are; None if they are claimed."""
    if agent.hold:
        reason = Reason.NO_WORKER if agent.unserved else Reason.AGENT_HOLD
        return Why(reason=reason, text=agent.hold)
    if agent.paused_until is not None and agent.paused_until > now:
        return Why(
            reason=Reason.PAUSED,
            text="the service asked for a pause",
            at=agent.paused_until,
            then="next request",
        )
    match agent.state:
        case GateState.OPEN:
            return _by_breaker(agent, FAILED, at=agent.probe_at, then="next probe")
        case GateState.HALF_OPEN:
            return _by_breaker(agent, f"{FAILED}; a probe is in flight")
        case GateState.RECOVERING:
            text = (
                f"the service answers again; up to {agent.allowance} requests in flight, increasing"
            )
            return _by_breaker(agent, text)
    return None


def _by_breaker(agent: AgentFacts, text: str, at: datetime | None = None, then: str = "") -> Why:
    state = GateState(agent.state).label.lower()
    return Why(reason=Reason.BREAKER, text=text, at=at, then=then, state=state)


def why(step: StepFacts, agent: AgentFacts | None, now: datetime) -> Why:
    """Return why a pending step waits: of several reasons the one that ends last."""
    if step.hold:
        return Why(reason=Reason.HOLD, text=step.hold)
    blocked = why_agent(agent, now) if agent else None
    if step.run_after is not None:
        first = blocked is not None and (blocked.at is None or blocked.at >= step.run_after)
        if not first:
            at = step.run_after if step.run_after > now else None
            return Why(reason=Reason.RETRY, text="its next attempt is scheduled", at=at)
    return blocked or _why_in_line(step, agent, now)


def _why_in_line(step: StepFacts, agent: AgentFacts | None, now: datetime) -> Why:
    """Return why a step waits that may be claimed."""
    if step.isolated:
        return Why(reason=Reason.ISOLATED, text="another isolated step is in flight at its agent")
    if step.urgent:
        text = f"behind {_others(step.urgent)} with a higher priority"
        return Why(reason=Reason.PRIORITY, text=text)
    if step.ahead:
        return Why(
            reason=Reason.KEY, text=f"behind {_others(step.ahead)} with the same fairness key"
        )
    if agent and agent.in_flight >= agent.window:
        text = f"the window is full, {agent.in_flight} of {agent.window} in flight"
        return Why(reason=Reason.WINDOW, text=text)
    if agent and agent.rate_at is not None and agent.rate_at > now:
        return Why(
            reason=Reason.RATE, text="the rate is used up", at=agent.rate_at, then="next goes"
        )
    return Why(reason=Reason.TURN, text="its turn is next")


def _others(count: int) -> str:
    if count > MOST_AHEAD:
        return f"{MOST_AHEAD:,}+ others"
    return "1 other" if count == 1 else f"{count:,} others"
