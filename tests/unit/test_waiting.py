"""Why a step waits: every reason, and which counts where there are several."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestration.states import GateState
from orchestration.waiting import MOST_AHEAD, AgentFacts, Reason, StepFacts, why, why_agent

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SOON, LATER, PAST = (NOW + timedelta(seconds=seconds) for seconds in (30, 60, -30))


def agent(state=GateState.CLOSED, **fields) -> AgentFacts:
    return AgentFacts(**{"window": 10, "state": state, **fields})


OPENED = agent(GateState.OPEN, probe_at=SOON)


@pytest.mark.parametrize(
    ("step", "of_agent", "reason", "at"),
    [
        (StepFacts(), agent(), Reason.TURN, None),
        (StepFacts(), None, Reason.TURN, None),
        (StepFacts(hold="held by ann"), OPENED, Reason.HOLD, None),
        (StepFacts(), agent(hold="held by ann"), Reason.AGENT_HOLD, None),
        (StepFacts(), agent(hold="held", unserved=True), Reason.NO_WORKER, None),
        (StepFacts(), agent(paused_until=SOON), Reason.PAUSED, SOON),
        (StepFacts(), agent(paused_until=PAST), Reason.TURN, None),
        (StepFacts(), OPENED, Reason.BREAKER, SOON),
        (StepFacts(), agent(GateState.HALF_OPEN), Reason.BREAKER, None),
        (StepFacts(), agent(GateState.RECOVERING, allowance=5), Reason.BREAKER, None),
        (StepFacts(run_after=SOON), agent(), Reason.RETRY, SOON),
        (
            StepFacts(run_after=PAST),
            agent(),
            Reason.RETRY,
            None,
        ),  # the supervisor is about to see it
        (StepFacts(run_after=LATER), OPENED, Reason.RETRY, LATER),  # of two times the later one
        (StepFacts(run_after=SOON), agent(GateState.OPEN, probe_at=LATER), Reason.BREAKER, LATER),
        (StepFacts(run_after=LATER), agent(hold="held by ann"), Reason.AGENT_HOLD, None),
        (StepFacts(alone=True), agent(), Reason.ALONE, None),
        (StepFacts(ahead=3), agent(in_flight=10), Reason.KEY, None),
        (StepFacts(urgent=1, ahead=3), agent(in_flight=10), Reason.PRIORITY, None),
        (StepFacts(), agent(in_flight=10), Reason.WINDOW, None),
        (StepFacts(), agent(in_flight=9), Reason.TURN, None),
        (StepFacts(), agent(rate_at=SOON), Reason.RATE, SOON),
        (StepFacts(), agent(rate_at=PAST), Reason.TURN, None),
    ],
)
def test_the_reason_is_what_ends_last(step, of_agent, reason, at):
    found = why(step, of_agent, NOW)
    assert (found.reason, found.at) == (reason, at)
    assert found.sentence("greeter")


def test_every_reason_is_told_in_words():
    told = {
        why(StepFacts(urgent=2, ahead=1), agent(), NOW).sentence("greeter"),
        why(StepFacts(ahead=1), agent(), NOW).sentence("greeter"),
        why(StepFacts(ahead=41), agent(), NOW).sentence("greeter"),
        why(StepFacts(ahead=MOST_AHEAD + 1), agent(), NOW).sentence("greeter"),
        why(StepFacts(), agent(in_flight=10), NOW).sentence("greeter"),
        why(StepFacts(), agent(rate_at=SOON), NOW).sentence("greeter"),
    }
    assert told == {
        "waits: behind 2 others of a higher priority",
        "waits: behind 1 other of its fairness key",
        "waits: behind 41 others of its fairness key",
        "waits: behind 1,000+ others of its fairness key",
        "waits: the window is full, 10 of 10 in flight",
        "waits: the rate is used up, next goes",
    }


def test_an_agent_that_nothing_keeps_has_no_reason():
    assert why_agent(agent(in_flight=10, rate_at=SOON), NOW) is None
