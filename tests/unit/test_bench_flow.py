"""The arithmetic of the measurements under failure, and their verdicts."""

import pytest

from bench.goodput import plan as goodput_plan
from bench.goodput import report
from bench.goodput.verdict import Found, Outage, Pair, Results
from bench.lanes import figures
from bench.lanes.fates import FAULTS, Fate, Rules, fate
from bench.poison import plan as poison_plan
from bench.poison import verdict as poison

MANY = 20_000


def fates(**rules):
    return [fate(Rules(**rules), number, 1)[0] for number in range(MANY)]


def share(found, what):
    return sum(one == what for one in found) / MANY


def test_a_third_of_the_failures_is_of_each_kind():
    found = fates(failing=0.3, busy=0.05)
    for what in FAULTS:
        assert share(found, what) == pytest.approx(0.1, abs=0.01)
    assert share(found, Fate.BUSY) == pytest.approx(0.05, abs=0.01)
    assert share(found, Fate.DONE) == pytest.approx(0.65, abs=0.01)


def test_a_sound_service_does_all_and_one_that_is_away_does_nothing():
    assert set(fates()) == {Fate.DONE}
    assert set(fates(failing=1.0)) == set(FAULTS)


def test_two_runs_meet_the_same_failures_and_two_calls_do_not():
    rules = Rules(failing=0.5)
    assert fates(failing=0.5) == fates(failing=0.5)
    repeats = [fate(rules, number, 2)[0] for number in range(MANY)]
    alike = sum(one == other for one, other in zip(fates(failing=0.5), repeats, strict=True))
    assert alike / MANY == pytest.approx(0.25 + 3 / 36, abs=0.02)


def test_what_fails_at_a_low_rate_fails_at_a_higher_one():
    few, more = fates(failing=0.1), fates(failing=0.2)
    assert all(b != Fate.DONE for a, b in zip(few, more, strict=True) if a != Fate.DONE)


def test_calls_take_as_long_as_they_should_on_average():
    took = [fate(Rules(latency=2.0), number, 1)[1] for number in range(MANY)]
    assert sum(took) / MANY == pytest.approx(2.0, rel=0.02)
    assert min(took) >= 1.0
    assert max(took) <= 3.0


def test_the_rate_is_taken_between_the_10th_and_the_80th_percentile():
    slow_to_begin, slow_to_end = [0] * 9 + [100], [500] * 20
    ends = [*slow_to_begin, *range(101, 171), *slow_to_end]
    assert figures.rate(ends, 100, 1000) == 70 / 70


def test_what_never_ended_counts_until_the_measurement_was_given_up():
    assert figures.rate(range(50), 100, 89) == 40 / 80
    assert figures.rate(range(10), 100, 89) == figures.rate([], 100, 89) == 0


def test_only_what_ends_within_the_time_is_timely():
    placed = {1: 0.0, 2: 0.0, 3: 10.0, 4: 10.0}
    assert figures.timely(placed, {1: 5.0, 2: 20.1, 3: 30.0}, 20) == 0.5


def test_a_rate_is_reached_when_some_seconds_had_it():
    ends = [*range(0, 20, 2), *(20 + number / 10 for number in range(100))]
    assert figures.reached(ends, 9, since=0) == pytest.approx(20, abs=1)
    assert figures.reached(ends, 9, since=25) == pytest.approx(0, abs=0.1)
    assert figures.reached(ends, 11, since=0) is None
    assert figures.reached([], 1, since=0) is None


def test_the_time_until_most_are_done_is_counted_from_the_healing():
    assert figures.after(range(101, 201), 0.8, 100, since=100) == 80
    assert figures.after(range(101, 180), 0.8, 100, since=100) is None


def test_half_of_the_poison_comes_first_and_the_other_half_is_spread():
    assert figures.spread(2, 500) == [0, 251]
    assert figures.spread(4, 8) == [0, 1, 4, 9]
    assert len(set(figures.spread(50, 500))) == 50
    assert max(figures.spread(50, 500)) < 550


def test_lanes_have_names_that_queues_can_have():
    lanes = goodput_plan.Plan().policies()
    assert len(lanes) == 2 * 7 + 6 + 1
    assert all(name.replace("_", "").isalnum() for name in lanes)
    assert len(poison_plan.Plan().policies()) == 1 + 4 * 3


def results(**changes):
    found = Found(
        failing=0.2,
        healthy=100.0,
        steady=Pair(on=76.0, off=80.0),
        recovered=Pair(on=84.0, off=80.0),
        full_after=12.0,
        timely=0.95,
        outage=Outage(seconds=45.0, probes=1),
    )
    for name, value in changes.items():
        setattr(found, name, value)
    return Results(found={found.failing: found}, busy=Pair(on=90.0, off=100.0), beside=0.99)


def test_targets_of_goodput_that_are_just_met_are_met():
    assert results().missed() == []
    assert results().last_line() == "goodput min=0.95 timely=0.95"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steady": Pair(on=75.9, off=80.0)}, "20% failures, steadily, the rate is 0.95 of that"),
        (
            {"steady": Pair(on=70, off=70)},
            "0.88 of (1 - p) of the healthy rate; the target is 0.9.",
        ),
        ({"recovered": Pair(on=70, off=80)}, "after an outage, the rate is 0.88 of that without"),
        ({"recovered": Pair(on=80, off=80, errors=3)}, "3 tasks are in error; the target is 0."),
        ({"timely": 0.94}, "0.94 of the tasks are done within 20 s; the target is 0.95."),
        ({"outage": Outage(seconds=46, probes=1)}, "80% of a backlog are done after 46 s;"),
        ({"outage": Outage(seconds=None, probes=1)}, "80% of a backlog are done never;"),
        (
            {"outage": Outage(seconds=9, probes=2)},
            "2 calls at once during an outage; the target is 1.",
        ),
    ],
)
def test_a_missed_target_of_goodput_is_a_sentence(changes, words):
    (sentence,) = results(**changes).missed()
    assert words in sentence
    assert sentence.endswith(".")


def test_at_half_failing_only_the_ratio_counts():
    late = {"failing": 0.5, "timely": 0.1, "outage": Outage(seconds=None, probes=1)}
    assert results(**late, steady=Pair(on=32.0, off=32.0)).missed() == []
    assert len(results(**late, steady=Pair(on=30.0, off=32.0)).missed()) == 1


def test_what_an_agent_beside_and_a_busy_service_miss_is_told():
    missed = Results(busy=Pair(on=89.0, off=100.0), beside=0.98).missed()
    assert "the rate is 0.89 of the healthy one; the target is 0.9." in missed[0]
    assert "did 98.0% of its tasks within 5 s; the target is 99%." in missed[1]


def test_nothing_done_without_a_breaker_is_no_ratio():
    assert Pair(on=1.0, off=0.0).ratio == 0.0


def test_the_table_has_a_row_for_each_rate():
    text = report.markdown(results())
    assert (
        "| 20% | 76.0, 80.0 | 0.95, 1.00 | 0.95 | 84.0, 80.0 | 1.05 | 12 s | 95.0% | 45 s | 1 |"
        in text
    )
    assert "5 % of answers 503 with Retry-After: 0.90 of healthy" in text
    never = report.markdown(results(full_after=None, outage=None, recovered=None))
    assert "| never |" in never


def poisoned(**changes):
    fields = {
        "kind": "raises", "poison": 10, "good": 500, "rate": 32.0, "healthy": 40.0, "done": 500,
        "error_after": 30.4, "in_error": 10, "incidents": 1, "blamed": 0,
    }  # fmt: skip
    return poison.Found(**{**fields, **changes})


def test_targets_of_poison_that_are_just_met_are_met():
    assert poisoned().missed() == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rate": 31.0}, "raises (10): the good ones go at 0.78 of their healthy rate"),
        ({"done": 499}, "499 of 500 good ones are done."),
        ({"error_after": None, "in_error": 3}, "3 of 10 poison steps are in error in time."),
    ],
)
def test_a_missed_target_of_poison_is_a_sentence(changes, words):
    (sentence,) = poisoned(**changes).missed()
    assert words in sentence


def test_the_last_line_of_poison_has_the_worst_of_all():
    assert poison.last_line([poisoned(), poisoned(rate=36.0, error_after=61.0)]) == (
        "poison min=0.80 error_within=61s"
    )
    assert poison.last_line([poisoned(error_after=None)]).endswith("error_within=never")


def test_the_table_of_poison_tells_who_was_blamed():
    text = poison.markdown([poisoned(), poisoned(blamed=2, done=498, error_after=None)])
    assert "| raises | 10 | 0.80 | 500/500 | 10/10 | 1 | 30 s |" in text
    assert "| 498/500, 2 in error | 10/10 | 1 | never |" in text
