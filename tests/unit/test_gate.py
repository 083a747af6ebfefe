"""The gate: capacity, rate, breaker, probe and ramp, and what the service itself asks for."""

from dataclasses import replace

import pytest

from orchestration.gate import GateView, Heard, Limits, again_at, excuses, hear, room, sent, unasked

LIMITS = Limits(window=100, rate=None, calls=10, failures=4, share=0.5, pause=5, pause_cap=30)
GOOD, BAD = Heard(answered=True), Heard(answered=False)
OPEN = GateView()


def shut(now=0.0):
    return hear(OPEN, LIMITS, [BAD] * 4, now)


def test_an_open_gate_has_room_for_its_window():
    assert [room(OPEN, LIMITS, in_flight, 0) for in_flight in (0, 60, 100, 120)] == [100, 40, 0, 0]


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ([BAD] * 3, "open"),  # too few to say anything
        ([BAD] * 4, "shut"),
        ([GOOD] * 5 + [BAD] * 4, "open"),  # 4 of 9
        ([GOOD] * 5 + [BAD] * 5, "shut"),  # 5 of 10
        ([BAD] * 4 + [GOOD] * 10, "open"),  # the last ten are good
    ],
)
def test_it_shuts_by_share_over_a_sliding_count(outcomes, state):
    assert hear(OPEN, LIMITS, outcomes, 0).state == state


def test_what_was_heard_long_ago_does_not_count():
    gate = hear(OPEN, LIMITS, [BAD] * 3, 0)
    assert hear(gate, LIMITS, [BAD], 30).state == "shut"
    assert hear(gate, LIMITS, [BAD], 100).state == "open"


def test_nothing_goes_until_the_probe_is_due_and_then_exactly_one():
    gate = shut()
    assert room(gate, LIMITS, 0, 4.9) == 0
    assert again_at(gate, 1.0) == 5
    assert room(gate, LIMITS, 3, 5.0) == 0  # what was out when it shut comes back first
    assert room(gate, LIMITS, 0, 5.0) == 1
    gate = sent(gate, LIMITS, 1, 5.0)
    assert gate.state == "probing"
    assert room(gate, LIMITS, 1, 6.0) == 0
    assert room(gate, LIMITS, 0, 6.0) == 1  # it was lost without a word


def test_a_failed_probe_doubles_the_pause_to_its_cap():
    gate, pauses = shut(), []
    for _ in range(5):
        now = gate.probe_at
        gate = hear(sent(gate, LIMITS, 1, now), LIMITS, [BAD], now)
        pauses.append(gate.probe_at - now)
    assert pauses == [10, 20, 30, 30, 30]


def test_it_ramps_up_to_the_whole_window():
    gate = sent(shut(), LIMITS, 1, 5.0)
    levels = []
    while gate.state != "open":
        levels.append(max(gate.allowance, 1))
        gate = hear(gate, LIMITS, [GOOD] * levels[-1], 6.0)
        assert room(gate, LIMITS, 0, 6.0) <= LIMITS.window
    assert levels == [1, 2, 5, 20, 80]
    assert gate.trips == 0


def test_a_ramp_that_nobody_waits_for_is_over():
    ramping = hear(sent(shut(), LIMITS, 1, 5.0), LIMITS, [GOOD], 6.0)
    assert unasked(ramping).state == "open"
    assert room(unasked(ramping), LIMITS, 0, 6.0) == LIMITS.window
    assert unasked(shut()) == shut()


def test_a_failure_while_ramping_shuts_it_again():
    gate = hear(sent(shut(), LIMITS, 1, 5.0), LIMITS, [GOOD], 6.0)
    assert gate.allowance == 2
    assert hear(gate, LIMITS, [GOOD, BAD], 7.0).state == "shut"


def test_what_comes_in_while_it_is_shut_changes_nothing():
    gate = shut()
    assert hear(gate, LIMITS, [GOOD] * 50 + [BAD] * 50, 1.0) == gate


def test_retry_after_is_obeyed_without_shutting():
    asked = Heard(answered=False, retry_after=30)
    gate = hear(OPEN, LIMITS, [asked] * 20, 100.0)
    assert gate.state == "open"
    assert room(gate, LIMITS, 0, 129.9) == 0
    assert room(gate, LIMITS, 0, 130.0) == 100
    assert again_at(gate, 100.0) == 130
    assert excuses(gate, 100.0)
    assert not excuses(gate, 131.0)


def test_a_probe_that_is_asked_to_wait_waits_that_long():
    probing = sent(shut(), LIMITS, 1, 5.0)
    gate = hear(probing, LIMITS, [Heard(answered=False, retry_after=60)], 6.0)
    assert (gate.state, gate.probe_at, gate.trips) == ("shut", 66.0, probing.trips)


def test_failures_are_excused_while_it_is_not_open():
    assert not excuses(OPEN, 0.0)
    assert excuses(shut(), 0.0)
    assert excuses(sent(shut(), LIMITS, 1, 5.0), 5.0)


def test_the_rate_limits_and_saves_up_one_second_at_most():
    slow = replace(LIMITS, rate=10.0)
    gate = OPEN
    assert room(gate, slow, 0, 0.0) == 10
    gate = sent(gate, slow, 10, 0.0)
    assert room(gate, slow, 0, 0.0) == 0
    assert room(gate, slow, 0, 0.35) == 3
    assert room(gate, slow, 0, 60.0) == 10
    assert (
        room(sent(GateView(), replace(LIMITS, rate=0.5), 1, 0.0), replace(LIMITS, rate=0.5), 0, 2.0)
        == 1
    )
