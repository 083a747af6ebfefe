"""The verdict of `python -m bench.goodput`."""

import pytest

from bench.goodput import report
from bench.goodput.verdict import Outage, Pair, RateResult, Results


def results(**changes):
    rate = RateResult(
        failing=0.2,
        healthy=100.0,
        steady=Pair(on=76.0, off=80.0),
        recovered=Pair(on=84.0, off=80.0),
        full_after=12.0,
        timely=0.95,
        outage=Outage(seconds=45.0, probes=1),
    )
    for name, value in changes.items():
        setattr(rate, name, value)
    return Results(by_rate={rate.failing: rate}, busy=Pair(on=90.0, off=100.0), beside=0.99)


def test_goodput_targets_exactly_met():
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
def test_goodput_missed_targets_are_sentences(changes, words):
    (sentence,) = results(**changes).missed()
    assert words in sentence
    assert sentence.endswith(".")


def test_goodput_at_half_failing_judges_ratio_only():
    late = {"failing": 0.5, "timely": 0.1, "outage": Outage(seconds=None, probes=1)}
    assert results(**late, steady=Pair(on=32.0, off=32.0)).missed() == []
    assert len(results(**late, steady=Pair(on=30.0, off=32.0)).missed()) == 1


def test_goodput_missed_by_other_agent_and_busy_service():
    missed = Results(busy=Pair(on=89.0, off=100.0), beside=0.98).missed()
    assert "the rate is 0.89 of the healthy one; the target is 0.9." in missed[0]
    assert "did 98.0% of its tasks within 5 s; the target is 99%." in missed[1]


def test_pair_ratio_without_breaker_zero():
    assert Pair(on=1.0, off=0.0).ratio == 0.0


def test_goodput_table_row_for_each_rate():
    text = report.markdown(results())
    assert (
        "| 20% | 76.0, 80.0 | 0.95, 1.00 | 0.95 | 84.0, 80.0 | 1.05 | 12 s | 95.0% | 45 s | 1 |"
        in text
    )
    assert "5 % of answers 503 with Retry-After: 0.90 of healthy" in text
    never = report.markdown(results(full_after=None, outage=None, recovered=None))
    assert "| never |" in never
