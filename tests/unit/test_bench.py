"""The arithmetic of the benchmark, and the words that its results get."""

import os

import pytest

from bench import measure, report
from drill.waiting import wait_for


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.5, 5), (0.51, 6), (0.95, 10), (1.0, 10)]
)
def test_a_percentile_is_a_value_that_was_measured(share, expected):
    assert measure.percentile([10, 1, 9, 2, 8, 3, 7, 4, 6, 5], share) == expected


def test_one_value_is_every_percentile():
    assert measure.percentile([7.0], 0.5) == measure.percentile([7.0], 0.95) == 7.0


def test_nothing_has_no_percentile():
    with pytest.raises(ValueError, match="nothing"):
        measure.percentile([], 0.5)


def test_the_ratio_is_to_the_best_of_the_peers():
    assert measure.ratio(600, [100, 200, 150]) == 3.0


@pytest.mark.parametrize("theirs", [[], [0.0]])
def test_without_a_peer_there_is_no_ratio(theirs):
    assert measure.ratio(600, theirs) is None


def test_cost_per_task_is_in_milliseconds_by_kind():
    used = measure.per_task({"a": 1.0, "b": 2.0}, {"a": 1.5, "b": 2.0}, 100)
    assert used == {"a": 5.0, "b": 0.0}


def test_the_middle_of_several_runs_is_by_kind():
    assert measure.middle([{"a": 1, "b": 9}, {"a": 3, "b": 7}, {"a": 2, "b": 8}]) == {
        "a": 2,
        "b": 8,
    }
    assert measure.middle([]) == {}


@pytest.mark.parametrize(
    ("rate", "seconds", "step", "expected"),
    [(100, 5, 50, 500), (103, 5, 50, 500), (1, 5, 50, 50), (96, 5, 10, 480)],
)
def test_a_run_is_as_long_as_wanted(rate, seconds, step, expected):
    assert measure.size_of_run(rate, seconds, step) == expected


def test_targets_that_are_just_met_are_met():
    assert measure.missed(3.0, 2.5, 70.0, 1.2) == []
    assert measure.missed(3.0, 2.5, 70.0, 0.8) == []


def test_what_was_not_measured_is_not_missed():
    assert measure.missed(None, None, None, None) == []


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((2.99, 9, 1, 1), "2.99 times the best durable peer's; the target is 3."),
        ((9, 2.4, 1, 1), "2.40 times the best peer's; the target is 2.5."),
        ((9, 9, 71, 1), "71 ms at the median; the target is 70 ms."),
        ((9, 9, 1, 1.21), "1.21 times a task of 1,000"),
        ((9, 9, 1, 0.79), "0.79 times a task of 1,000"),
    ],
)
def test_a_missed_target_is_a_sentence(figures, words):
    (sentence,) = measure.missed(*figures)
    assert words in sentence
    assert sentence.endswith(".")


def test_this_process_has_used_time_and_memory():
    assert os.getpid() in measure.tree(os.getpid())
    assert measure.cpu_seconds(os.getpid()) > 0
    assert measure.peak_memory(os.getpid()) > 1
    assert 1 < measure.memory(os.getpid()) <= measure.peak_memory(os.getpid())


def test_time_that_this_process_runs_is_counted():
    before = measure.run_seconds(os.getpid())
    wait_for(lambda: measure.run_seconds(os.getpid()) > before, "the kernel counts it", 5)


def test_a_process_that_is_gone_counts_nothing():
    nobody = 2**22 + 1  # above any process id
    assert measure.cpu_seconds(nobody) == measure.peak_memory(nobody) == 0
    assert measure.run_seconds(nobody) == measure.memory(nobody) == 0


def results(**changes):
    system = {
        "label": "this engine",
        "durable": True,
        "tasks_per_second": 612.4,
        "tasks_per_second_best": 700.0,
        "idle_ms": {"p50": 51.2, "p95": 60},
        "half_load_ms": {"p50": 70, "p95": 90},
        "peak_memory_mb": 250.0,
        "cpu_ms_per_task": {"agent": 0.5, "postgres": 0.25},
    }
    return {
        "systems": {"engine": system},
        "machine": {"cores": 2, "load_before": 0.1, "load_after": 2.0},
        "ratio": {"durable": 3.456, "any": None},
        "ratio_of_best_runs": {"durable": 3.3, "any": None},
        "idle_p50_without_remote_calls_ms": 21.2,
        "flatness": None,
        "missed": [],
        **changes,
    }


def test_the_last_line_is_for_scripts():
    assert report.last_line(results()) == "ratio durable=3.46 any=n/a"


def test_the_tables_name_systems_and_kinds():
    text = report.markdown(results())
    assert "| this engine | yes | 612 (700) | 51 / 60 | 70 / 90 | 250 MB |" in text
    assert "| system | agent | postgres | sum |" in text
    assert "| this engine | 0.50 | 0.25 | 0.75 |" in text


def test_the_ratio_of_the_best_runs_is_told_where_there_is_one():
    assert "By the best run" not in report.markdown(results())
    text = report.markdown(results(ratio_of_best_runs={"durable": 3.333, "any": 2.5}))
    assert "durable=3.33 any=2.50" in text


def test_flatness_and_missed_targets_are_told():
    flat = {"tasks": [1_000, 50_000], "cpu_ms_per_task": [1.0, 1.3], "ratio": 1.3}
    text = report.markdown(results(flatness=flat, missed=["It is slow."]))
    assert "1.00 ms in batches of 1,000, 1.30 ms in one of 50,000: 1.30 times as much" in text
    assert text.endswith("It is slow.")
