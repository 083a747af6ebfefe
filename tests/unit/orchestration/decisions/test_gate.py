"""The gate: window, rate, circuit breaker, recovery, and what the service itself asks for."""

from dataclasses import replace

import pytest

from orchestration.decisions.gate import (
    GateView,
    Limits,
    Observation,
    after_idle,
    again_at,
    answered_since,
    excuses,
    observe,
    room,
    sent,
    share_failed,
)

LIMITS = Limits(
    window=100,
    rate=None,
    time_allowed=10,
    calls=10,
    failures=4,
    share=0.5,
    pause=5,
    pause_cap=30,
    retry_after_cap=600,
)
CLOSED = GateView()


def good(at=0.0):
    return Observation(health="good", sent_at=at)


def bad(at=0.0):
    return Observation(health="bad", sent_at=at)


def asked(seconds, at=0.0, health="bad"):
    return Observation(health=health, sent_at=at, retry_after=seconds)


def opened(now=0.0):
    return observe(CLOSED, LIMITS, [bad(now)] * 4, now)


def probed(at=5.0):
    return sent(opened(), LIMITS, 1, at)


def recovering(at=5.0):
    return observe(probed(at), LIMITS, [good(at)], at + 1)


def test_closed_breaker_has_room_for_the_window():
    assert [room(CLOSED, LIMITS, in_flight, 0) for in_flight in (0, 60, 100, 120)] == [
        100, 40, 0, 0
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ([bad()] * 3, "closed"),  # too few to say anything
        ([bad()] * 4, "open"),
        ([good()] * 5 + [bad()] * 4, "closed"),  # 4 of 9
        ([good()] * 5 + [bad()] * 5, "open"),  # 5 of 10
        ([bad()] * 4 + [good()] * 10, "closed"),
        ([Observation(health="nothing", sent_at=0)] * 50, "closed"),  # the requests' own trouble
    ],
)
def test_breaker_opens_by_the_share_of_failures(outcomes, state):
    assert observe(CLOSED, LIMITS, outcomes, 0).state == state


def test_outcomes_outside_the_window_do_not_count():
    gate = observe(CLOSED, LIMITS, [bad()] * 3, 0)
    assert observe(gate, LIMITS, [bad(30)], 30).state == "open"
    assert observe(gate, LIMITS, [bad(100)], 100).state == "closed"


def test_window_extends_while_calls_are_few():
    few = observe(CLOSED, LIMITS, [good()] * 5, 0)
    assert share_failed(few.slots, LIMITS, 50) == (0, 5)
    assert observe(few, LIMITS, [bad(50)] * 4, 50).state == "closed"  # 4 of 9
    many = observe(CLOSED, LIMITS, [good()] * 50, 0)
    assert share_failed(many.slots, LIMITS, 19) == (0, 50)
    later = observe(many, LIMITS, [good(25)] * 10, 25)
    assert share_failed(later.slots, LIMITS, 25) == (0, 10)


def test_slow_failures_that_arrive_together_do_not_open_the_breaker():
    gate = CLOSED
    for second in range(10):  # 90 of a hundred calls a second succeed at once
        gate = observe(gate, LIMITS, [good(second)] * 90, second + 0.1, in_flight=10)
    timed_out = [bad(second) for second in range(10) for _ in range(10)]
    assert observe(gate, LIMITS, timed_out, 10).state == "closed"


def test_fast_failures_before_slow_successes_do_not_open_the_breaker():
    """What is still out counts as good until it is heard."""
    assert observe(CLOSED, LIMITS, [bad()] * 40, 0.1, in_flight=60).state == "closed"
    assert observe(CLOSED, LIMITS, [bad()] * 40, 0.1, in_flight=20).state == "open"


def test_open_breaker_sends_exactly_one_probe_when_it_is_due():
    gate = opened()
    assert room(gate, LIMITS, 0, 4.9) == 0
    assert again_at(gate, 1.0) == 5
    assert room(gate, LIMITS, 0, 5.0) == 1
    gate = sent(gate, LIMITS, 1, 5.0)
    assert gate.state == "half_open"
    assert room(gate, LIMITS, 1, 6.0) == 0
    assert room(gate, LIMITS, 0, 6.0) == 1  # it was lost without a word


def test_pause_doubles_after_several_failed_probes_up_to_its_cap():
    gate, pauses = opened(), []
    for _ in range(4):
        now = gate.probe_at
        gate = sent(gate, LIMITS, 1, now)
        for _ in range(3):
            assert gate.state == "half_open"
            gate = observe(gate, LIMITS, [bad(now)], now)
        pauses.append(gate.probe_at - now)
    assert pauses == [10, 20, 30, 30]


def test_half_open_breaker_recovers_to_the_whole_window():
    gate, levels, now = probed(), [], 5.0
    while gate.state != "closed":
        levels.append(max(gate.allowance, 1))
        now += 1
        gate = observe(gate, LIMITS, [good(now)] * levels[-1], now)
    assert levels == [1, 4, 16, 64]
    assert (gate.trips, gate.slots) == (0, ())
    assert room(gate, LIMITS, 0, now) == LIMITS.window


def test_allowance_shrinks_alike_and_only_failed_probes_reopen():
    gate = recovering()
    assert (gate.state, gate.allowance) == ("recovering", 4)
    fine = observe(gate, LIMITS, [good(7)] * 3 + [bad(7)], 7)
    assert (fine.state, fine.allowance) == ("recovering", 16)
    worse = observe(gate, LIMITS, [good(7)] * 2 + [bad(7)] * 2, 7)
    assert (worse.state, worse.allowance) == ("recovering", 2)
    probing = observe(worse, LIMITS, [bad(8)] * 2, 8)
    assert probing.state == "half_open"
    gate = observe(probing, LIMITS, [bad(9)] * 3, 9)
    assert (gate.state, gate.probe_at) == ("open", 14)  # the pause has not grown


def test_recovery_level_waits_for_slow_successes():
    """Fast failures come in first: at a share that is all right, they must not be the judges."""
    limits = replace(LIMITS, share=0.8)
    gate = observe(recovering(), limits, [bad(7)] * 4, 7, in_flight=4)
    assert (gate.state, gate.allowance) == ("recovering", 4)
    assert observe(gate, limits, [good(7)] * 2, 8, in_flight=0).allowance == 16


def test_outcomes_sent_before_a_recovery_level_are_ignored():
    gate = recovering()
    assert observe(gate, LIMITS, [bad(4)] * 50, 8) == gate
    assert observe(opened(), LIMITS, [good(-1)] * 50 + [bad(-1)] * 50, 1).state == "open"


def test_recovery_without_waiting_steps_ends():
    assert after_idle(recovering(), 7).state == "closed"
    assert after_idle(opened(), 7) == opened()


def test_retry_after_delays_one_step_unless_it_is_for_all():
    gate = observe(CLOSED, LIMITS, [good(100)] * 50 + [asked(30, 100)] * 5, 100)
    assert room(gate, LIMITS, 0, 100) == 100
    for outcomes in (
        [good(100)] * 50 + [asked(30, 100, "busy")],  # too many requests
        [good(100)] * 15 + [asked(30, 100)] * 5,  # more than a fifth
    ):
        gate = observe(CLOSED, LIMITS, outcomes, 100)
        assert gate.state == "closed"
        assert [room(gate, LIMITS, 0, now) for now in (129.9, 130)] == [0, 100]
        assert again_at(gate, 100) == 130


def test_pause_that_a_service_asks_for_is_limited_by_the_policy():
    gate = observe(CLOSED, LIMITS, [asked(86_400, 100, "busy")], 100)
    assert again_at(gate, 100) == 100 + LIMITS.retry_after_cap


def test_retry_after_delays_the_next_probe_as_long():
    gate = observe(probed(), LIMITS, [asked(60, 5)], 6)
    assert (gate.state, gate.probe_at, gate.trips) == ("open", 66, probed().trips)


def test_failures_are_excused_while_open_or_half_open():
    assert [excuses(gate) for gate in (CLOSED, opened(), probed(), recovering())] == [
        False, True, True, False
    ]  # fmt: skip


def test_failure_before_and_after_other_successes_counts_for_the_step():
    gate = observe(CLOSED, LIMITS, [good(5)], 6)
    assert answered_since(gate, 4)
    assert not answered_since(gate, 5.5)
    assert not answered_since(gate, None)  # its first
    assert not answered_since(CLOSED, 4)  # nothing was answered yet
    assert answered_since(
        observe(gate, LIMITS, [good(3)], 7), 4
    )  # a slower answer takes nothing back


def test_rate_limit_saves_up_at_most_one_second():
    slow = replace(LIMITS, rate=10.0)
    gate = CLOSED
    assert room(gate, slow, 0, 0.0) == 10
    gate = sent(gate, slow, 10, 0.0)
    assert room(gate, slow, 0, 0.0) == 0
    assert room(gate, slow, 0, 0.35) == 3
    assert room(gate, slow, 0, 60.0) == 10
    slower = replace(LIMITS, rate=0.5)
    assert room(sent(GateView(), slower, 1, 0.0), slower, 0, 2.0) == 1


def test_recovery_level_with_few_calls_is_decided_eventually():
    gate = replace(recovering(5.0), allowance=8)
    for at in range(10, 400, 20):
        gate = observe(gate, LIMITS, [good(float(at))], at + 1.0)
    assert gate.state == "closed"


@pytest.mark.parametrize("state", ["half_open", "recovering"])
def test_late_outcomes_are_ignored(state):
    gate = GateView(state=state, since=100.0, allowance=4)
    late = bad(101.0)
    assert observe(gate, LIMITS, [late], 100_000.0) == replace(gate, slots=[])


def test_breaker_is_opened_by_failures_only():
    long_ago, now = 0.0, 1000.0
    gate = observe(CLOSED, LIMITS, [bad(now)] * 4, now, in_flight=20)
    assert gate.state == "closed"  # what is in flight may be well
    gate = observe(gate, LIMITS, [good(long_ago)] * 18, now, in_flight=2)
    assert gate.state == "closed"
    assert observe(gate, LIMITS, [bad(now)], now, in_flight=1).state == "open"
