"""The drawing of a task's time stays inside its frame, and the words for times are right."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestration.models import Attempt, Step, Task
from orchestration.queries import Outlook, StepDetail, TaskDetail
from orchestration.templatetags.ops import NOTHING, capped, lasted, offset, spell
from orchestration.views.waterfall import LABEL, THINNEST, WIDTH, waterfall

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


def attempt(start, end, outcome="done"):
    return Attempt(number=1, dispatched_at=at(start), ended_at=at(end), outcome=outcome)


def drawing(*steps):
    details = [
        StepDetail(step=Step(name=f"s{i}", **fields), attempts=attempts, outlook=Outlook(text=""))
        for i, (attempts, fields) in enumerate(steps)
    ]
    return waterfall(
        TaskDetail(
            now=START,
            task=Task(created_at=START),
            outlook=Outlook(text=""),
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


def test_nothing_is_drawn_before_anything_happened():
    assert drawing(([], {}), ([], {})) is None


def test_bars_follow_each_other_in_scale():
    chart = drawing(([attempt(0, 5)], {}), ([attempt(5, 10)], {}))
    half = (WIDTH - LABEL) / 2
    assert bars(chart) == [("done", LABEL, half, 30), ("done", LABEL + half, half, 60)]
    assert [tick.label for tick in chart.ticks] == ["0", "5 s", "10 s"]
    assert [float(tick.x) for tick in chart.ticks] == [LABEL, LABEL + half, WIDTH]
    assert [tick.anchor for tick in chart.ticks] == ["middle", "middle", "end"]


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0.083, ["0", "50 ms"]),
        (1.37, ["0", "500 ms", "1 s"]),
        (47.3, ["0", "15 s", "30 s", "45 s"]),
        (3 * 3600 + 11, ["0", "60 min", "2 h", "3 h"]),
    ],
)
def test_the_axis_of_time_shows_round_lengths(seconds, labels):
    chart = drawing(([attempt(0, seconds)], {}))
    assert [tick.label for tick in chart.ticks] == labels
    for tick in chart.ticks:
        assert LABEL <= float(tick.x) <= WIDTH + 0.1


def test_an_attempt_in_flight_reaches_to_its_deadline():
    fields = {"locked_by": "s-1", "dispatched_at": at(1), "complete_by": at(11), "attempt": 2}
    assert [kind for kind, *_ in bars(drawing(([attempt(0, 1, "transient")], fields)))] == [
        "transient",
        "flight",
    ]


def test_a_wait_for_a_retry_is_drawn():
    chart = drawing(([attempt(0, 1, "expired")], {"run_after": at(4)}))
    assert [kind for kind, *_ in bars(chart)] == ["expired", "wait"]
    assert chart.rows[0].bars[1].title == "waits for its retry, 3 s"


@pytest.mark.parametrize(
    ("start", "end"), [(0, 0), (-5, 0), (0.001, 0.002), (0, 86_400 * 400), (99.9999, 100)]
)
def test_every_bar_is_seen_and_stays_inside(start, end):
    for _, x, width, _ in bars(drawing(([attempt(start, end), attempt(100, 100)], {}))):
        assert LABEL <= x <= WIDTH - THINNEST
        assert width >= THINNEST
        assert x + width <= WIDTH + 0.1


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (119.9, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (7200, "2 h"),
        (172_799, "47 h"),
        (172_800, "2 d"),
    ],
)
def test_lengths_of_time_are_spelled_in_a_word(seconds, expected):
    assert spell(seconds) == expected


def test_other_figures_are_spelled():
    assert [capped(n) for n in (0, 999, 1_000, 1_001)] == ["0", "999", "1,000", "1,000+"]
    assert [offset(s) for s in (0.01, -0.4, 300.2, -3600)] == [
        "right",
        "right",
        "300 s behind",
        "3,600 s ahead",
    ]
    assert lasted(at(1.5), START) == "1.500 s"
    assert lasted(None, START) == NOTHING
