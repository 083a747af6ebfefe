import pytest

from orchestration.console.durations import format_duration


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (0.0042, "4 ms"),
        (0.25, "250 ms"),
        (0.99999, "1 s"),
        (1.23, "1.2 s"),
        (42, "42 s"),
        (59.97, "1 min"),
        (90, "1 min 30 s"),
        (278, "4 min 38 s"),
        (1183, "19 min"),
        (3599.9, "59 min"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (86_400, "1 d"),
        (273_600, "3 d 4 h"),
        (100_000_000, "1,157 d"),
    ],
)
def test_format_duration(seconds, expected):
    assert format_duration(seconds) == expected
