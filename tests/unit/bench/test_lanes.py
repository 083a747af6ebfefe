"""The fates of calls, the arithmetic on tasks' ends, and the lanes of the plans."""

import pytest

from bench.goodput import plan as goodput_plan
from bench.lanes import figures
from bench.lanes.fates import FAULTS, Fate, Rules, fate
from bench.poison import plan as poison_plan

MANY = 20_000


def fates(**rules):
    return [fate(Rules(**rules), number, 1)[0] for number in range(MANY)]


def share(drawn, what):
    return sum(each == what for each in drawn) / MANY


def test_fates_share_failures_equally():
    drawn = fates(failing=0.3, busy=0.05)
    for what in FAULTS:
        assert share(drawn, what) == pytest.approx(0.1, abs=0.01)
    assert share(drawn, Fate.BUSY) == pytest.approx(0.05, abs=0.01)
    assert share(drawn, Fate.DONE) == pytest.approx(0.65, abs=0.01)


def test_fates_of_healthy_and_failed_service():
    assert set(fates()) == {Fate.DONE}
    assert set(fates(failing=1.0)) == set(FAULTS)


def test_fates_same_for_runs_different_for_repeats():
    rules = Rules(failing=0.5)
    assert fates(failing=0.5) == fates(failing=0.5)
    repeats = [fate(rules, number, 2)[0] for number in range(MANY)]
    alike = sum(first == repeat for first, repeat in zip(fates(failing=0.5), repeats, strict=True))
    assert alike / MANY == pytest.approx(0.25 + 3 / 36, abs=0.02)


def test_fates_at_higher_rate_include_those_at_lower():
    few, more = fates(failing=0.1), fates(failing=0.2)
    assert all(b != Fate.DONE for a, b in zip(few, more, strict=True) if a != Fate.DONE)


def test_call_duration_average_and_range():
    took = [fate(Rules(latency=2.0), number, 1)[1] for number in range(MANY)]
    assert sum(took) / MANY == pytest.approx(2.0, rel=0.02)
    assert min(took) >= 1.0
    assert max(took) <= 3.0


def test_rate_between_10th_and_80th_percentile():
    slow_to_begin, slow_to_end = [0] * 9 + [100], [500] * 20
    ends = [*slow_to_begin, *range(101, 171), *slow_to_end]
    assert figures.rate(ends, 100, 1000) == 70 / 70


def test_rate_with_unended_tasks_until_deadline():
    assert figures.rate(range(50), 100, 89) == 40 / 80
    assert figures.rate(range(10), 100, 89) == figures.rate([], 100, 89) == 0


def test_timely_share_within_time():
    placed = {1: 0.0, 2: 0.0, 3: 10.0, 4: 10.0}
    assert figures.timely(placed, {1: 5.0, 2: 20.1, 3: 30.0}, 20) == 0.5


def test_reached_once_rate_held_for_span():
    ends = [*range(0, 20, 2), *(20 + number / 10 for number in range(100))]
    assert figures.reached(ends, 9, since=0) == pytest.approx(20, abs=1)
    assert figures.reached(ends, 9, since=25) == pytest.approx(0, abs=0.1)
    assert figures.reached(ends, 11, since=0) is None
    assert figures.reached([], 1, since=0) is None


def test_after_counts_from_healing():
    assert figures.after(range(101, 201), 0.8, 100, since=100) == 80
    assert figures.after(range(101, 180), 0.8, 100, since=100) is None


def test_spread_half_first_half_evenly():
    assert figures.spread(2, 500) == [0, 251]
    assert figures.spread(4, 8) == [0, 1, 4, 9]
    assert len(set(figures.spread(50, 500))) == 50
    assert max(figures.spread(50, 500)) < 550


def test_lane_names_are_queue_names():
    lanes = goodput_plan.GoodputPlan().policies()
    assert len(lanes) == 2 * 7 + 6 + 1
    assert all(name.replace("_", "").isalnum() for name in lanes)
    assert len(poison_plan.PoisonPlan().policies()) == 1 + 4 * 3
