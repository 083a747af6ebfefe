"""The rate of an operation, and its summary."""

import pytest

from orchestration.decisions.backoff import refilled
from orchestration.operations.summary import sentence


@pytest.mark.parametrize(
    ("tokens", "elapsed", "rate", "reach", "allowed"),
    [
        (0.0, 1.0, 20.0, 2.0, 20.0),
        (0.5, 0.25, 2.0, 2.0, 1.0),  # fractions add up
        (0.0, 3600.0, 20.0, 2.0, 40.0),  # an absence is not made up for
        (0.0, 3.0, 0.1, 2.0, 0.3),
        (0.9, 600.0, 0.1, 2.0, 1.0),  # but however slow, one may always become due
        (0.4, -5.0, 20.0, 2.0, 0.4),  # a clock that went back
        (500.0, 0.0, 20.0, 2.0, 40.0),  # a rate that was lowered
    ],
)
def test_items_allowed_by_the_rate(tokens, elapsed, rate, reach, allowed):
    assert refilled(tokens, elapsed, rate, reach) == pytest.approx(allowed)


def test_rate_holds_over_a_minute():
    tokens, sent = 1.0, 0
    for _ in range(60):
        tokens = refilled(tokens, 1.03, 7.3, 2.0)
        sent += int(tokens)
        tokens -= int(tokens)
    assert sent == int(1 + 60 * 1.03 * 7.3)


@pytest.mark.parametrize(
    ("act", "counts", "why", "expected"),
    [
        ("resubmit", {"fixed": 35, "again": 2, "other": 1}, {},
         "38 resubmitted: 35 fixed, 2 failed again (same cause), 1 failed (other cause)"),
        ("resubmit", {"fixed": 1, "skipped": 4}, {"it has ended": 1, "it is held": 3},
         "1 resubmitted: 1 fixed; 4 skipped (3: it is held, 1: it has ended)"),
        ("resubmit", {"sent": 1200, "waiting": 1}, {},
         "1,200 resubmitted: 1,200 in progress; 1 waiting"),
        ("resubmit", {"waiting": 3}, {}, "3 waiting"),
        ("undo", {"fixed": 2, "other": 1}, {}, "3 submitted for undo: 2 undone, 1 failed (other cause)"),
        ("hold", {"fixed": 7}, {}, "7 held"),
        ("release", {"fixed": 7, "skipped": 1}, {}, "7 released; 1 skipped"),
        ("by_hand", {"fixed": 1}, {}, "1 marked as done"),
        ("hold", {}, {}, "nothing was changed"),
    ],
)  # fmt: skip
def test_summary_of_a_finished_operation(act, counts, why, expected):
    assert sentence(act, counts, why) == expected
