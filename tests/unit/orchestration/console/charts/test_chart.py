"""The charts' geometry: round ticks, columns that add up, lines with gaps, a table that says the same."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from orchestration.console.charts.chart import (
    COUNTS,
    HEIGHT,
    LENGTHS,
    SHARES,
    Series,
    chart,
    clock_ticks,
    count_ticks,
    second_ticks,
    write_count,
)
from orchestration.console.charts.sparkline import sparkline
from orchestration.console.durations import format_duration
from orchestration.console.queries.trends import RANGES, starts_of

HEIGHT_OF_SPARK = 24
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MOMENTS = [NOON + timedelta(minutes=place) for place in range(60)]


def values(**at):
    """Return a value for some of the minutes, as `at_3=5`."""
    return [at.get(f"at_{place}", 0) for place in range(60)]


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (0, [0, 1]),
        (1, [0, 1]),
        (3, [0, 1, 2, 3]),
        (7, [0, 2, 4, 6, 8]),
        (100, [0, 50, 100]),
        (1234, [0, 500, 1000, 1500]),
    ],
)
def test_counts_have_round_ticks(highest, ticks):
    assert count_ticks(highest) == ticks


@pytest.mark.parametrize(
    ("highest", "labels"),
    [
        (0, ["0 s", "1 ms"]),
        (0.35, ["0 s", "100 ms", "200 ms", "300 ms", "400 ms"]),
        (7, ["0 s", "2 s", "4 s", "6 s", "8 s"]),
        (100, ["0 s", "1 min", "2 min"]),
        (2000, ["0 s", "10 min", "20 min", "30 min", "40 min"]),
        (30_000, ["0 s", "3 h", "6 h", "9 h"]),
        (900_000, ["0 s", "5 d", "10 d", "15 d"]),
    ],
)
def test_durations_have_ticks_in_common_units(highest, labels):
    ticks = second_ticks(highest)
    assert ticks[-1] >= highest
    assert [format_duration(tick) for tick in ticks] == labels


@pytest.mark.parametrize("top", [1, 2, 3, 9, 10, 11, 99, 101, 12_345, 10**7])
@pytest.mark.parametrize("ticks", [count_ticks, second_ticks])
def test_ticks_are_few_and_reach_the_maximum(ticks, top):
    values = ticks(top)
    assert values[0] == 0
    assert values[-1] >= top
    assert 2 <= len(values) <= 7


@pytest.mark.parametrize("top", [0.3, *(2**power for power in range(25))])
def test_durations_fit_the_axis(top):
    labels = [format_duration(tick) for tick in second_ticks(top)]
    assert [len(label.split()) for label in labels] == [2] * len(labels)  # a number and one unit


def test_numbers_fit_the_axis():
    assert [write_count(value) for value in (0, 950, 1500, 12_000, 1_250_000)] == [
        "0", "950", "1,500", "12 k", "1.2 M",
    ]  # fmt: skip


@pytest.mark.parametrize("key", RANGES)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_time_axis_has_round_times_in_any_zone(key, zone):
    moments = [start.astimezone(ZoneInfo(zone)) for start in starts_of(RANGES[key], NOON)]
    ticks = clock_ticks(moments, 5)
    assert 2 <= len(ticks) <= 6
    assert [place for place, _ in ticks] == sorted({place for place, _ in ticks})
    if key == "1h":
        assert all(label.endswith(("0", "5")) for _, label in ticks)


def test_stacked_bars_add_up_to_the_total():
    good, bad = Series(name="good", kind="done", values=values(at_3=6)), values(at_3=2)
    drawn = chart(
        "T", MOMENTS, COUNTS, stacked=[good, Series(name="bad", kind="error", values=bad)]
    )
    column = drawn.columns[3]
    low, high = column.blocks
    assert (low.kind, high.kind) == ("done", "error")
    assert float(low.height) == pytest.approx(3 * float(high.height), abs=0.2)
    assert float(high.y) + float(high.height) == pytest.approx(float(low.y), abs=0.2)
    assert float(low.y) + float(low.height) == pytest.approx(float(drawn.floor), abs=0.2)
    assert column.title == "01 Mar 12:03: good 6, bad 2"
    assert drawn.columns[0].title == "01 Mar 12:00: no data"
    assert drawn.columns[0].blocks == []


def test_shapes_lie_inside_the_drawing():
    lines = [Series(name="p95", kind="p95", values=values(at_0=3.3, at_59=0.2))]
    drawn = chart("T", MOMENTS, LENGTHS, lines=lines, wide=True)
    for column in drawn.columns:
        assert float(drawn.left) <= float(column.x)
        assert float(column.x) + float(column.width) <= float(drawn.right)
    points = [tuple(map(float, point.split(","))) for point in drawn.lines[0].pieces[0].split()]
    assert all(0 < x < drawn.width and 0 < y < HEIGHT for x, y in points)
    assert len(points) == 60


def test_label_that_would_leave_the_drawing_is_omitted():
    until_one = [MOMENTS[-1] + timedelta(minutes=number - 58) for number in range(60)]
    drawn = chart("T", until_one, COUNTS)
    assert [label for _, label in clock_ticks(until_one, 5)][-1] == "13:00"
    assert [label for _, label in drawn.along][-1] == "12:45"


def test_line_has_gaps_for_missing_values_and_a_dot_for_a_lone_point():
    known = [1.0, 2.0, None, 3.0, None, *[None] * 55]
    line = chart("T", MOMENTS, LENGTHS, lines=[Series(name="p50", kind="p50", values=known)]).lines[
        0
    ]
    assert len(line.pieces) == 1
    assert len(line.pieces[0].split()) == 2
    assert len(line.dots) == 1


def test_table_has_the_drawn_values_and_no_empty_rows():
    series = [Series(name="p95", kind="p95", values=[None] * 5 + [2.5] + [None] * 54)]
    drawn = chart("T", MOMENTS, LENGTHS, lines=series)
    assert drawn.rows == [(MOMENTS[5], ["2.5 s"])]
    assert not drawn.empty


def test_chart_without_values_is_empty():
    assert chart(
        "T", MOMENTS, COUNTS, stacked=[Series(name="a", kind="done", values=values())]
    ).empty
    assert chart("T", MOMENTS, SHARES, lines=[]).empty


def test_sparkline_small_values():
    drawn = sparkline([0, 1, 0, 100], "words")
    assert [bar[0] for bar in drawn.bars] == [5, 15]
    assert [float(height) for *_, height in drawn.bars] == [1.5, HEIGHT_OF_SPARK]
    assert not sparkline([0, 0], "words").bars


def test_range_ends_with_the_present_span():
    for chosen in RANGES.values():
        starts = starts_of(chosen, NOON + timedelta(seconds=59))
        assert len(starts) == chosen.count
        assert starts[-1] <= NOON + timedelta(seconds=59)
        assert (NOON + timedelta(seconds=59) - starts[-1]).total_seconds() < chosen.span
        assert starts[0].timestamp() % chosen.span == 0
