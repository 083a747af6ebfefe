"""The drawing of a task's time stays inside its frame, and the words for times are right."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestration.console.charts.waterfall import FOLD, LABEL, THINNEST, WIDTH, waterfall
from orchestration.console.queries.task import StepDetail, TaskDetail
from orchestration.console.templatetags.ops import NOTHING, capped, lasted, offset
from orchestration.models import Attempt, Step, Task
from orchestration.waiting.next_step import NextStep

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


def attempt(start, end, outcome="done"):
    return Attempt(number=1, dispatched_at=at(start), ended_at=at(end), outcome=outcome)


def drawing(*steps):
    details = [
        StepDetail(
            step=Step(id=i + 1, name=f"s{i}", **fields),
            attempts=attempts,
            outlook=NextStep(text=""),
        )
        for i, (attempts, fields) in enumerate(steps)
    ]
    return waterfall(
        TaskDetail(
            now=START,
            task=Task(created_at=START),
            outlook=NextStep(text=""),
            steps=details,
            events=[],
            cut=False,
            hold=None,
            agents={},
        )
    )


def bars(chart):
    return [
        (bar.kind, float(bar.x), float(bar.width), bar.y) for row in chart.rows for bar in row.bars
    ]


def test_waterfall_is_empty_before_the_first_attempt():
    assert drawing(([], {}), ([], {})) is None


def test_bars_are_in_order_and_to_scale():
    chart = drawing(([attempt(0, 5)], {}), ([attempt(5, 10)], {}))
    half = (WIDTH - LABEL) / 2
    assert bars(chart) == [("done", LABEL, half, 30), ("done", LABEL + half, half, 60)]
    assert [tick.label for tick in chart.ticks] == ["0 s", "5 s", "10 s"]
    assert [float(tick.x) for tick in chart.ticks] == [LABEL, LABEL + half, WIDTH]
    assert [tick.anchor for tick in chart.ticks] == ["middle", "middle", "end"]


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0.083, ["0 s", "50 ms"]),
        (1.37, ["0 s", "500 ms", "1 s"]),
        (47.3, ["0 s", "15 s", "30 s", "45 s"]),
        (3 * 3600 + 11, ["0 s", "1 h", "2 h", "3 h"]),
    ],
)
def test_time_axis_has_round_durations(seconds, labels):
    chart = drawing(([attempt(0, seconds)], {}))
    assert [tick.label for tick in chart.ticks] == labels
    for tick in chart.ticks:
        assert LABEL <= float(tick.x) <= WIDTH + 0.1


def test_attempt_in_flight_reaches_to_its_deadline():
    fields = {"locked_by": "s-1", "dispatched_at": at(1), "complete_by": at(11), "attempt": 2}
    assert [kind for kind, *_ in bars(drawing(([attempt(0, 1, "transient")], fields)))] == [
        "transient",
        "flight",
    ]


def test_wait_for_a_retry_is_drawn():
    chart = drawing(([attempt(0, 1, "expired")], {"run_after": at(4)}))
    assert [kind for kind, *_ in bars(chart)] == ["expired", "wait"]
    assert chart.rows[0].bars[1].title == "waits for its retry, 3 s"


def test_idle_time_is_folded_so_that_attempts_are_seen():
    """A step that failed at once and was resubmitted 90 seconds later."""
    chart = drawing(([attempt(0, 0.05, "rejected"), attempt(90, 90.05)], {}))
    room = WIDTH - LABEL - FOLD
    assert bars(chart) == [
        ("rejected", LABEL, room / 2, 30),
        ("done", LABEL + room / 2 + FOLD, room / 2, 30),
    ]
    ((fold),) = chart.folds
    assert (float(fold.x), fold.label) == (LABEL + room / 2, "1 min 30 s")
    assert [tick.label for tick in chart.ticks] == ["0 s", "1 min 30 s"]


@pytest.mark.parametrize(
    ("attempts", "folds"),
    [
        ([(0, 5), (9, 14)], []),  # no longer than the attempts together
        ([(0, 0.1), (0.9, 1)], []),  # a short time
        ([(0, 1), (3.5, 4)], ["2.5 s"]),
        ([(30, 31)], ["30 s"]),  # it waited from the beginning
        ([(0, 1), (0.5, 40)], []),  # at the same time
        ([(0, 1), (60, 61), (200, 201)], ["59 s", "2 min 19 s"]),
    ],
)
def test_only_long_idle_times_are_folded(attempts, folds):
    chart = drawing(*(([attempt(*times)], {}) for times in attempts))
    assert [fold.label for fold in chart.folds] == folds


def test_wait_for_a_retry_is_folded_and_drawn_through_the_fold():
    chart = drawing(([attempt(0, 0.5, "transient")], {"run_after": at(600.5)}))
    _, wait = chart.rows[0].bars
    assert [fold.label for fold in chart.folds] == ["10 min"]
    assert float(wait.width) == pytest.approx(FOLD, abs=0.2)


def test_many_folds_leave_room_for_the_attempts():
    chart = drawing(([attempt(n * 100, n * 100 + 1) for n in range(60)], {}))
    assert len(chart.folds) == 12
    for _, x, width, _ in bars(chart):
        assert LABEL <= x <= x + width <= WIDTH + 0.1


def test_bars_of_attempts_name_them_and_wide_ones_show_their_number():
    chart = drawing(([attempt(0, 5), attempt(5, 5.01), attempt(5.01, 10)], {"run_after": at(20)}))
    bars = [(bar.attempt, bool(bar.middle)) for bar in chart.rows[0].bars]
    assert bars == [(1, True), (1, False), (1, True), (None, False)]


@pytest.mark.parametrize(
    ("start", "end"), [(0, 0), (-5, 0), (0.001, 0.002), (0, 86_400 * 400), (99.9999, 100)]
)
def test_bars_have_a_minimum_width_and_stay_inside(start, end):
    for _, x, width, _ in bars(drawing(([attempt(start, end), attempt(100, 100)], {}))):
        assert LABEL <= x <= WIDTH - THINNEST
        assert width >= THINNEST
        assert x + width <= WIDTH + 0.1


def test_counts_offsets_and_durations_are_formatted():
    assert [capped(n) for n in (0, 999, 1_000, 1_001)] == ["0", "999", "1,000", "1,000+"]
    assert [offset(s) for s in (0.01, -0.4, 300.2, -3600)] == [
        "in sync",
        "in sync",
        "5 min behind",
        "1 h ahead",
    ]
    assert lasted(at(1.5), START) == "1.5 s"
    assert lasted(None, START) == NOTHING
