"""Waits after failures, and token buckets."""

import pytest

from orchestration.decisions.backoff import backoff, doubled, refilled


@pytest.mark.parametrize(
    ("count", "seconds"), [(0, 2.0), (1, 2.0), (2, 4.0), (5, 32.0), (6, 60.0), (10_000, 60.0)]
)
def test_doubled(count, seconds):
    assert doubled(2.0, 60.0, count) == seconds


def test_backoff_between_its_bounds():
    assert [backoff(2.0, 60.0, 3, chance) for chance in (0.0, 0.5, 1.0)] == [4.0, 6.0, 8.0]


@pytest.mark.parametrize(
    ("tokens", "elapsed", "rate", "allowed"),
    [(0.0, 0.1, 20.0, 2.0), (15.0, 9.0, 20.0, 20.0), (0.0, 9.0, 0.5, 1.0), (3.0, -9.0, 20.0, 3.0)],
)
def test_refilled_up_to_a_second_or_one(tokens, elapsed, rate, allowed):
    assert refilled(tokens, elapsed, rate) == pytest.approx(allowed)
