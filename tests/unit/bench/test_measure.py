"""Arithmetic, targets and readings of /proc."""

import os

import pytest

from bench import measure
from drill.waiting import wait_for


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.5, 5), (0.51, 6), (0.95, 10), (1.0, 10)]
)
def test_percentile_nearest_rank(share, expected):
    assert measure.percentile([10, 1, 9, 2, 8, 3, 7, 4, 6, 5], share) == expected


def test_percentile_of_one_value():
    assert measure.percentile([7.0], 0.5) == measure.percentile([7.0], 0.95) == 7.0


def test_percentile_of_no_values_raises():
    with pytest.raises(ValueError, match="nothing"):
        measure.percentile([], 0.5)


def test_ratio_to_best_peer():
    assert measure.ratio(600, [100, 200, 150]) == 3.0


@pytest.mark.parametrize("theirs", [[], [0.0]])
def test_ratio_without_peer_is_none(theirs):
    assert measure.ratio(600, theirs) is None


def test_per_task_milliseconds_by_kind():
    used = measure.per_task({"a": 1.0, "b": 2.0}, {"a": 1.5, "b": 2.0}, 100)
    assert used == {"a": 5.0, "b": 0.0}


def test_middle_median_by_kind():
    assert measure.middle([{"a": 1, "b": 9}, {"a": 3, "b": 7}, {"a": 2, "b": 8}]) == {
        "a": 2,
        "b": 8,
    }
    assert measure.middle([]) == {}


@pytest.mark.parametrize(
    ("rate", "seconds", "step", "expected"),
    [(100, 5, 50, 500), (103, 5, 50, 500), (1, 5, 50, 50), (96, 5, 10, 480)],
)
def test_size_of_run_rounds_to_step(rate, seconds, step, expected):
    assert measure.size_of_run(rate, seconds, step) == expected


MET = {
    "ratios": {"durable": 6.0, "any": 4.0, "queue": 1.0},
    "idle": 55.0,
    "half": {"p50": 100.0, "p95": 180.0},
    "flat": 1.1,
}


def missed(**changes):
    return measure.missed(**{**MET, **changes})


def test_missed_targets_exactly_met():
    assert missed() == []
    assert missed(flat=0.5) == []


def test_missed_targets_not_measured():
    assert measure.missed(dict.fromkeys(MET["ratios"])) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"ratios": {"durable": 5.99}},
            "5.99 times that of the best peer (durable); the target is 6.",
        ),
        ({"ratios": {"any": 3.9}}, "3.90 times that of the best peer (any); the target is 4."),
        ({"ratios": {"queue": 0.9}}, "0.90 times that of the best peer (queue); the target is 1."),
        ({"idle": 56.0}, "56 ms at the median; the target is 55 ms."),
        ({"half": {"p50": 101.0, "p95": 1.0}}, "101 ms (p50); the target is 100 ms."),
        ({"half": {"p50": 1.0, "p95": 181.0}}, "181 ms (p95); the target is 180 ms."),
        ({"flat": 1.11}, "1.11 times a task of 1,000"),
    ],
)
def test_missed_targets_are_sentences(changes, words):
    (sentence,) = missed(**changes)
    assert words in sentence
    assert sentence.endswith(".")


def test_cpu_and_memory_of_this_process():
    assert os.getpid() in measure.tree(os.getpid())
    assert measure.cpu_seconds(os.getpid()) > 0
    assert measure.peak_memory(os.getpid()) > 1
    assert 1 < measure.memory(os.getpid()) <= measure.peak_memory(os.getpid())


def test_run_seconds_grows():
    before = measure.run_seconds(os.getpid())
    wait_for(lambda: measure.run_seconds(os.getpid()) > before, "the kernel counts it", 5)


def test_cpu_and_memory_of_missing_process_are_zero():
    missing = 2**22 + 1  # above any process id
    assert measure.cpu_seconds(missing) == measure.peak_memory(missing) == 0
    assert measure.run_seconds(missing) == measure.memory(missing) == 0
