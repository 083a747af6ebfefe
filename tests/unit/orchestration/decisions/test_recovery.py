"""What follows a failed attempt: a table of situations and decisions."""

from dataclasses import replace

import pytest

from orchestration.decisions.recovery import (
    INSTANCE_SICK,
    KEY_FORGOTTEN,
    Cancel,
    Failure,
    GiveUp,
    Retry,
    Thresholds,
    Undo,
    decide,
)

LIMITS = Thresholds(failure_threshold=3, backoff=1, backoff_cap=4, undo_threshold=5)
WAIT = replace(LIMITS, past_threshold="wait", extended_wait=100, max_extended_waits=2)
UNDO = replace(LIMITS, past_threshold="undo")
LAST = Failure(failure_count=2)  # the next one reaches the threshold


@pytest.mark.parametrize(
    ("limits", "failure", "decision"),
    [
        (LIMITS, Failure(failure_count=0), Retry(failure_count=1, wait=0.5)),
        (LIMITS, Failure(failure_count=1), Retry(failure_count=2, wait=1.0)),
        (LIMITS, LAST, GiveUp(failure_count=3)),
        # the policy's other two answers
        (WAIT, LAST, Retry(failure_count=0, wait=100, extended_waits=1, extended=True)),
        (
            WAIT,
            replace(LAST, extended_waits=1),
            Retry(failure_count=0, wait=100, extended_waits=2, extended=True),
        ),
        (WAIT, replace(LAST, extended_waits=2), GiveUp(failure_count=3)),
        (UNDO, LAST, Undo(failure_count=3)),
        # excused failures are not counted under any policy
        (UNDO, replace(LAST, excused=True), Retry(failure_count=2, wait=0.5, counted=False)),
        # the service asked for more time than the backoff, or for less
        (
            UNDO,
            replace(LAST, excused=True, put_off=7.0),
            Retry(failure_count=2, wait=7.0, counted=False),
        ),
        # nor is what failed at a sick instance: another does it at once
        (UNDO, replace(LAST, code=INSTANCE_SICK), Retry(failure_count=2, wait=0.0, counted=False)),
        (LIMITS, Failure(failure_count=1, put_off=7.0), Retry(failure_count=2, wait=7.0)),
        (LIMITS, Failure(failure_count=1, put_off=0.3), Retry(failure_count=2, wait=1.0)),
        (
            replace(LIMITS, retry_after_cap=5.0),
            Failure(failure_count=1, put_off=7.0),
            Retry(failure_count=2, wait=5.0),
        ),
        # who stayed silent for half of the chances has the rest of them alone
        (LIMITS, Failure(failure_count=0, outcome="expired"), Retry(failure_count=1, wait=0.5)),
        (
            LIMITS,
            Failure(failure_count=1, outcome="expired"),
            Retry(failure_count=2, wait=1.0, isolated=True),
        ),
        (
            LIMITS,
            Failure(failure_count=2, outcome="expired", excused=True),
            Retry(failure_count=2, wait=0.5, counted=False, isolated=True),
        ),
        (
            UNDO,
            Failure(failure_count=1, outcome="expired", direction="undo"),
            Retry(failure_count=2, wait=1.0),
        ),
        (
            UNDO,
            Failure(failure_count=2, outcome="expired", direction="undo"),
            Retry(failure_count=3, wait=2.0, isolated=True),
        ),
        # an undo step has its own, larger budget, and never ends but in error
        (UNDO, replace(LAST, direction="undo"), Retry(failure_count=3, wait=2.0)),
        (UNDO, Failure(failure_count=4, direction="undo"), GiveUp(failure_count=5)),
        # of a task being undone: a step without effect is cancelled, one in doubt is settled
        (LIMITS, replace(LAST, undoing=True, in_doubt=False), Cancel()),
        (LIMITS, replace(LAST, undoing=True), Retry(failure_count=3, wait=2.0)),
        # the service knows of no effect: again, under a new key
        (
            LIMITS,
            replace(LAST, outcome="absent", in_doubt=False),
            Retry(failure_count=2, wait=0.0, counted=False, new_key=True),
        ),
        # only a person can find out
        (LIMITS, Failure(failure_count=0, code=KEY_FORGOTTEN), GiveUp(failure_count=1)),
    ],
)
def test_decisions(limits, failure, decision):
    assert decide(limits, failure, 0.0) == decision


def test_waits_double_to_the_cap_and_are_spread_over_the_upper_half():
    patient = replace(LIMITS, failure_threshold=100, undo_threshold=100)
    for chance in (0.0, 0.999):
        waits = [decide(patient, Failure(failure_count=count), chance).wait for count in range(6)]
        factor = 0.5 + chance / 2
        assert waits == pytest.approx([factor * wait for wait in (1, 2, 4, 4, 4, 4)])


def test_a_huge_count_does_not_overflow():
    patient = replace(LIMITS, failure_threshold=10**6, undo_threshold=10**6)
    assert decide(patient, Failure(failure_count=10**5), 0.0).wait == 2.0
