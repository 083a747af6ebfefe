"""The gate: window, rate, circuit breaker, recovery, and what the service itself asks for."""

from dataclasses import replace

import pytest

from orchestration.gate import (
    GateView,
    Heard,
    Limits,
    again_at,
    answered_since,
    excuses,
    hear,
    room,
    sent,
    share_failed,
    unasked,
)

LIMITS = Limits(
    window=100, rate=None, time_allowed=10, calls=10, failures=4, share=0.5, pause=5, pause_cap=30
)
CLOSED = GateView()


def good(at=0.0):
    return Heard(health="good", sent_at=at)


def bad(at=0.0):
    return Heard(health="bad", sent_at=at)


def asked(seconds, at=0.0, health="bad"):
    return Heard(health=health, sent_at=at, retry_after=seconds)


def opened(now=0.0):
    return hear(CLOSED, LIMITS, [bad(now)] * 4, now)


def probed(at=5.0):
    return sent(opened(), LIMITS, 1, at)


def recovering(at=5.0):
    return hear(probed(at), LIMITS, [good(at)], at + 1)


def test_a_closed_breaker_has_room_for_the_window():
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
        ([Heard(health="nothing", sent_at=0)] * 50, "closed"),  # the requests' own trouble
    ],
)
def test_it_opens_by_the_share_of_failures(outcomes, state):
    assert hear(CLOSED, LIMITS, outcomes, 0).state == state


def test_what_was_sent_long_ago_does_not_count():
    gate = hear(CLOSED, LIMITS, [bad()] * 3, 0)
    assert hear(gate, LIMITS, [bad(30)], 30).state == "open"
    assert hear(gate, LIMITS, [bad(100)], 100).state == "closed"


def test_it_looks_further_back_while_the_calls_are_few():
    few = hear(CLOSED, LIMITS, [good()] * 5, 0)
    assert share_failed(few.slots, LIMITS, 50) == (0, 5)
    assert hear(few, LIMITS, [bad(50)] * 4, 50).state == "closed"  # 4 of 9
    many = hear(CLOSED, LIMITS, [good()] * 50, 0)
    assert share_failed(many.slots, LIMITS, 19) == (0, 50)
    later = hear(many, LIMITS, [good(25)] * 10, 25)
    assert share_failed(later.slots, LIMITS, 25) == (0, 10)


def test_slow_failures_that_come_in_together_are_no_burst():
    gate = CLOSED
    for second in range(10):  # 90 of a hundred calls a second succeed at once
        gate = hear(gate, LIMITS, [good(second)] * 90, second + 0.1, in_flight=10)
    timed_out = [bad(second) for second in range(10) for _ in range(10)]
    assert hear(gate, LIMITS, timed_out, 10).state == "closed"


def test_fast_failures_that_come_in_before_the_successes_are_no_outage():
    """What is still out counts as good until it is heard."""
    assert hear(CLOSED, LIMITS, [bad()] * 40, 0.1, in_flight=60).state == "closed"
    assert hear(CLOSED, LIMITS, [bad()] * 40, 0.1, in_flight=20).state == "open"


def test_nothing_goes_until_the_probe_is_due_and_then_exactly_one():
    gate = opened()
    assert room(gate, LIMITS, 0, 4.9) == 0
    assert again_at(gate, 1.0) == 5
    assert room(gate, LIMITS, 0, 5.0) == 1
    gate = sent(gate, LIMITS, 1, 5.0)
    assert gate.state == "half_open"
    assert room(gate, LIMITS, 1, 6.0) == 0
    assert room(gate, LIMITS, 0, 6.0) == 1  # it was lost without a word


def test_several_probes_fail_before_the_next_pause_and_that_doubles_to_its_cap():
    gate, pauses = opened(), []
    for _ in range(4):
        now = gate.probe_at
        gate = sent(gate, LIMITS, 1, now)
        for _ in range(3):
            assert gate.state == "half_open"
            gate = hear(gate, LIMITS, [bad(now)], now)
        pauses.append(gate.probe_at - now)
    assert pauses == [10, 20, 30, 30]


def test_it_recovers_to_the_whole_window():
    gate, levels, now = probed(), [], 5.0
    while gate.state != "closed":
        levels.append(max(gate.allowance, 1))
        now += 1
        gate = hear(gate, LIMITS, [good(now)] * levels[-1], now)
    assert levels == [1, 4, 16, 64]
    assert (gate.trips, gate.slots) == (0, ())
    assert room(gate, LIMITS, 0, now) == LIMITS.window


def test_the_allowance_shrinks_by_the_same_share_and_only_failed_probes_open_it_again():
    gate = recovering()
    assert (gate.state, gate.allowance) == ("recovering", 4)
    fine = hear(gate, LIMITS, [good(7)] * 3 + [bad(7)], 7)
    assert (fine.state, fine.allowance) == ("recovering", 16)
    worse = hear(gate, LIMITS, [good(7)] * 2 + [bad(7)] * 2, 7)
    assert (worse.state, worse.allowance) == ("recovering", 2)
    probing = hear(worse, LIMITS, [bad(8)] * 2, 8)
    assert probing.state == "half_open"
    gate = hear(probing, LIMITS, [bad(9)] * 3, 9)
    assert (gate.state, gate.probe_at) == ("open", 14)  # the pause has not grown


def test_a_level_waits_for_slow_successes():
    """Fast failures come in first: at a share that is all right, they must not be the judges."""
    limits = replace(LIMITS, share=0.8)
    gate = hear(recovering(), limits, [bad(7)] * 4, 7, in_flight=4)
    assert (gate.state, gate.allowance) == ("recovering", 4)
    assert hear(gate, limits, [good(7)] * 2, 8, in_flight=0).allowance == 16


def test_what_was_sent_before_a_level_says_nothing_about_it():
    gate = recovering()
    assert hear(gate, LIMITS, [bad(4)] * 50, 8) == gate
    assert hear(opened(), LIMITS, [good(-1)] * 50 + [bad(-1)] * 50, 1).state == "open"


def test_a_recovery_that_nothing_waits_for_is_over():
    assert unasked(recovering(), 7).state == "closed"
    assert unasked(opened(), 7) == opened()


def test_retry_after_puts_off_one_unless_it_is_said_to_everybody():
    gate = hear(CLOSED, LIMITS, [good(100)] * 50 + [asked(30, 100)] * 5, 100)
    assert room(gate, LIMITS, 0, 100) == 100
    for outcomes in (
        [good(100)] * 50 + [asked(30, 100, "busy")],  # too many requests
        [good(100)] * 15 + [asked(30, 100)] * 5,  # more than a fifth
    ):
        gate = hear(CLOSED, LIMITS, outcomes, 100)
        assert gate.state == "closed"
        assert [room(gate, LIMITS, 0, now) for now in (129.9, 130)] == [0, 100]
        assert again_at(gate, 100) == 130


def test_a_probe_that_is_asked_to_wait_waits_that_long():
    gate = hear(probed(), LIMITS, [asked(60, 5)], 6)
    assert (gate.state, gate.probe_at, gate.trips) == ("open", 66, probed().trips)


def test_failures_are_excused_while_it_is_open_or_probes():
    assert [excuses(gate) for gate in (CLOSED, opened(), probed(), recovering())] == [
        False, True, True, False
    ]  # fmt: skip


def test_a_failure_before_and_after_others_were_answered_is_the_steps_own():
    gate = hear(CLOSED, LIMITS, [good(5)], 6)
    assert answered_since(gate, 4)
    assert not answered_since(gate, 5.5)
    assert not answered_since(gate, None)  # its first
    assert not answered_since(CLOSED, 4)  # nothing was answered yet
    assert answered_since(hear(gate, LIMITS, [good(3)], 7), 4)  # a slower answer takes nothing back


def test_the_rate_limits_and_saves_up_one_second_at_most():
    slow = replace(LIMITS, rate=10.0)
    gate = CLOSED
    assert room(gate, slow, 0, 0.0) == 10
    gate = sent(gate, slow, 10, 0.0)
    assert room(gate, slow, 0, 0.0) == 0
    assert room(gate, slow, 0, 0.35) == 3
    assert room(gate, slow, 0, 60.0) == 10
    slower = replace(LIMITS, rate=0.5)
    assert room(sent(GateView(), slower, 1, 0.0), slower, 0, 2.0) == 1


def test_a_level_that_few_calls_reach_is_judged_in_the_end():
    gate = replace(recovering(5.0), allowance=8)
    for at in range(10, 400, 20):
        gate = hear(gate, LIMITS, [good(float(at))], at + 1.0)
    assert gate.state == "closed"


@pytest.mark.parametrize("state", ["half_open", "recovering"])
def test_what_is_heard_too_late_says_nothing(state):
    gate = GateView(state=state, since=100.0, allowance=4)
    late = bad(101.0)
    assert hear(gate, LIMITS, [late], 100_000.0) == replace(gate, slots=[])


def test_it_opens_by_a_failure_never_by_a_success_that_is_too_old_to_count():
    long_ago, now = 0.0, 1000.0
    gate = hear(CLOSED, LIMITS, [bad(now)] * 4, now, in_flight=20)
    assert gate.state == "closed"  # what is in flight may be well
    gate = hear(gate, LIMITS, [good(long_ago)] * 18, now, in_flight=2)
    assert gate.state == "closed"
    assert hear(gate, LIMITS, [bad(now)], now, in_flight=1).state == "open"
