"""Why a step waits: every reason, and which counts where there are several."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestration.decisions.wait_reasons import (
    MOST_AHEAD,
    AgentFacts,
    Reason,
    StepFacts,
    why,
    why_agent,
)
from orchestration.states import GateState

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
        (StepFacts(isolated=True), agent(), Reason.ISOLATED, None),
        (StepFacts(ahead=3), agent(in_flight=10), Reason.KEY, None),
        (StepFacts(urgent=1, ahead=3), agent(in_flight=10), Reason.PRIORITY, None),
        (StepFacts(), agent(in_flight=10), Reason.WINDOW, None),
        (StepFacts(), agent(in_flight=9), Reason.TURN, None),
        (StepFacts(), agent(rate_at=SOON), Reason.RATE, SOON),
        (StepFacts(), agent(rate_at=PAST), Reason.TURN, None),
    ],
)
def test_reason_is_the_one_that_ends_last(step, of_agent, reason, at):
    answer = why(step, of_agent, NOW)
    assert (answer.reason, answer.at) == (reason, at)
    assert answer.sentence("greeter")


def test_reasons_all_have_a_sentence():
    reasons = {
        why(StepFacts(urgent=2, ahead=1), agent(), NOW).sentence("greeter"),
        why(StepFacts(ahead=1), agent(), NOW).sentence("greeter"),
        why(StepFacts(ahead=41), agent(), NOW).sentence("greeter"),
        why(StepFacts(ahead=MOST_AHEAD + 1), agent(), NOW).sentence("greeter"),
        why(StepFacts(), agent(in_flight=10), NOW).sentence("greeter"),
        why(StepFacts(), agent(rate_at=SOON), NOW).sentence("greeter"),
    }
    assert reasons == {
        "waiting, behind 2 others with a higher priority",
        "waiting, behind 1 other with the same fairness key",
        "waiting, behind 41 others with the same fairness key",
        "waiting, behind 1,000+ others with the same fairness key",
        "waiting, the window is full, 10 of 10 in flight",
        "waiting, the rate is used up, next goes",
    }


def test_agent_without_obstacle_has_no_reason():
    assert why_agent(agent(in_flight=10, rate_at=SOON), NOW) is None
