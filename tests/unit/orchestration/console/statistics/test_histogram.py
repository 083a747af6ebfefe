"""Percentiles from buckets: near the truth at every scale, and the same however counts are added."""

import random
from itertools import pairwise
from statistics import quantiles

import pytest

from orchestration.console.statistics.histogram import (
    BOUNDS,
    SIZE,
    bucket,
    buckets,
    merged,
    percentile,
)


@pytest.mark.parametrize("median", [0.004, 0.08, 1.5, 40.0, 9_000.0])
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_a_percentile_is_within_a_tenth_of_the_true_one(median, share):
    chance = random.Random(7)  # noqa: S311 - lots for a test
    lengths = [median * chance.lognormvariate(0, 0.8) for _ in range(5_000)]
    true = quantiles(lengths, n=100)[round(share * 100) - 1]
    estimate = percentile(buckets(lengths), share)
    assert estimate == pytest.approx(true, rel=0.1)


def test_merged_histograms_equal_one_histogram():
    lengths = [0.01 * place for place in range(1, 400)]
    apart = [buckets(lengths[start::7]) for start in range(7)]
    assert merged(apart) == buckets(lengths)
    assert merged([*apart, []]) == buckets(lengths)  # a short one lacks only zeros


def test_empty_histogram_has_no_percentile():
    assert percentile([], 0.5) is None
    assert percentile([0] * SIZE, 0.95) is None


def test_outermost_buckets_hold_the_extremes():
    assert bucket(0.0) == 0
    assert bucket(-1.0) == 0  # a clock that was set back
    assert bucket(BOUNDS[0]) == 1  # a bound belongs to the bucket above it
    assert bucket(1e9) == SIZE - 1
    assert 0.0 <= percentile(buckets([0.0005]), 0.95) <= BOUNDS[0]
    assert percentile(buckets([1e9]), 0.5) == BOUNDS[-1]


def test_bounds_grow_by_one_factor_up_to_a_week():
    assert all(high / low == pytest.approx(2**0.25) for low, high in pairwise(BOUNDS))
    assert BOUNDS[-1] > 7 * 86_400


def test_value_lies_in_its_bucket():
    for seconds in (0.003, 0.3, 30.0):
        assert percentile(buckets([seconds]), 0.95) == pytest.approx(seconds, rel=0.19)
