"""When schedules are due: in nights when clocks are changed, in leap years, and at intervals."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.decisions.due_times import (
    Timing,
    in_words,
    shortest_gap,
    why_no_cron,
    why_no_zone,
)

HOUR = timedelta(hours=1)


def local(timing, after, count=3):
    """Return the next due times as clocks of the zone show them."""
    return [f"{timing.local(due):%m-%d %H:%M %z}" for due in islice(timing.after(after), count)]


@pytest.mark.parametrize(
    ("zone", "cron", "noon_before", "expected"),
    [
        # clocks go forward: 2:30 does not exist
        ("Europe/Berlin", "30 2 * * *", (2026, 3, 28), ["03-29 03:00 +0200", "03-30 02:30 +0200"]),
        ("America/New_York", "30 2 * * *", (2026, 3, 7), ["03-08 03:00 -0400", "03-09 02:30 -0400"]),
        # and two times of the gap are one
        ("Europe/Berlin", "0,30 2 * * *", (2026, 3, 28), ["03-29 03:00 +0200", "03-30 02:00 +0200"]),
        # clocks go back: 2:30, and 1:30 in New York, exist twice
        ("Europe/Berlin", "30 2 * * *", (2026, 10, 24), ["10-25 02:30 +0200", "10-26 02:30 +0100"]),
        ("America/New_York", "30 1 * * *", (2026, 10, 31), ["11-01 01:30 -0400", "11-02 01:30 -0500"]),
        # of half an hour
        ("Australia/Lord_Howe", "15 2 * * *", (2026, 10, 2), ["10-04 02:30 +1100", "10-05 02:15 +1100"]),
    ],
)  # fmt: skip
def test_fixed_time_is_due_once_in_a_night_when_clocks_are_changed(
    zone, cron, noon_before, expected
):
    timing = Timing(cron=cron, zone=zone)
    assert local(timing, datetime(*noon_before, 16, tzinfo=UTC), 2) == expected


def test_time_that_was_the_first_of_two_is_not_due_again():
    timing = Timing(cron="30 2 * * *", zone="Europe/Berlin")
    between = datetime(2026, 10, 25, 1, 15, tzinfo=UTC)  # 2:15 for the second time
    assert local(timing, between, 1) == ["10-26 02:30 +0100"]


@pytest.mark.parametrize(
    ("night", "hours"),
    [((2026, 3, 28), 23), ((2026, 10, 24), 25), ((2026, 6, 1), 24)],
)
def test_expression_with_stars_follows_the_time_that_passes(night, hours):
    timing = Timing(cron="0 * * * *", zone="Europe/Berlin")
    midnight = datetime(*night, 22, 30, tzinfo=UTC)
    first, *others = islice(timing.after(midnight), 30)
    a_day_later = timing.local(first).replace(fold=0) + timedelta(
        days=1
    )  # by the clock on the wall
    assert [first, *others].index(a_day_later.astimezone(UTC)) == hours
    assert {later - earlier for earlier, later in pairwise(others)} == {HOUR}


def test_leap_day_is_due_every_fourth_year():
    timing = Timing(cron="0 12 29 2 *")
    years = [due.year for due in islice(timing.after(datetime(2095, 1, 1, tzinfo=UTC)), 3)]
    assert years == [2096, 2104, 2108]


def test_interval_counts_from_its_date():
    start = datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
    timing = Timing(every=90, start_at=start)
    assert timing.first_after(start - timedelta(days=3)) == start
    assert timing.first_after(start) == start + timedelta(seconds=90)
    later = datetime(2026, 6, 1, 12, tzinfo=UTC)
    due = timing.first_after(later)
    assert later < due <= later + timedelta(seconds=90)
    assert (due - start).total_seconds() % 90 == 0


@given(
    seconds=st.integers(0, 15 * 366 * 86_400),
    cron=st.sampled_from(
        ["* * * * *", "30 2 * * *", "*/20 1-3 * * *", "15 1,2 29 2 *", "0 0 * * 7", "59 23 L * *"]
    ),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
)
def test_due_times_rise_and_do_not_depend_on_where_one_begins(seconds, cron, zone):
    timing = Timing(cron=cron, zone=zone)
    after = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    times = list(islice(timing.after(after), 5))
    assert all(earlier < later for earlier, later in pairwise([after, *times]))
    assert list(islice(timing.after(times[0]), 4)) == times[1:]


def test_jitter_of_a_reference_is_always_the_same_and_spreads():
    timing = Timing(cron="0 2 * * *", jitter=600.0)
    delays = [timing.delay(f"customer-{number}").total_seconds() for number in range(500)]
    assert delays == [timing.delay(f"customer-{number}").total_seconds() for number in range(500)]
    assert 0 <= min(delays) < 60
    assert 540 < max(delays) < 600


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0 2 * *",
        "0 2 * * * *",
        "61 2 * * *",
        "0 2 30 2 *",
        "a b c d e",
        "@daily",
        "0 2 * * *\0",
    ],
)
def test_what_is_not_a_cron_expression_is_refused_with_a_sentence(text):
    assert why_no_cron(text).endswith(".")


def test_cron_expression_and_zone_are_accepted():
    assert why_no_cron("0 2 * * MON-FRI") == ""
    assert why_no_zone("Europe/Berlin") == ""


@pytest.mark.parametrize(
    "name", ["", "Berlin", "../../etc/passwd", "Europe", "\0", "Europe/Berlin "]
)
def test_what_is_not_a_zone_is_refused_with_a_sentence(name):
    assert why_no_zone(name).endswith(".")


def test_shortest_gap_is_that_of_the_expression():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert shortest_gap(Timing(cron="0,10 2 * * *"), now) == 600
    assert shortest_gap(Timing(every=30, start_at=now), now) == 30


@pytest.mark.parametrize(
    ("every", "words"), [(1, "Every second"), (90, "Every 90 seconds"), (7200, "Every 2 hours")]
)
def test_interval_is_written_in_its_largest_unit(every, words):
    assert in_words(Timing(every=every)) == words
