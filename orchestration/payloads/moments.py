"""Times and durations that applications name."""

from datetime import UTC, datetime
from typing import Any

EARLIEST_YEAR, LATEST_YEAR = 1900, 9000
LONGEST_S = 10 * 366 * 86_400.0  # of a duration


def moment(text: Any) -> datetime:
    """Return the time that an ISO 8601 text with an offset names, in UTC.

    Raises ValueError for others, saying what is wrong with it: "… is not a time".

    >>> moment("2030-01-31T12:00:00+02:00").isoformat()
    '2030-01-31T10:00:00+00:00'
    """
    try:
        named = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError(f"{text!r} is not a time") from None
    if named.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC")
    if not EARLIEST_YEAR <= named.year < LATEST_YEAR:
        raise ValueError(f"{text!r} is not in the years {EARLIEST_YEAR} to {LATEST_YEAR - 1}")
    return named.astimezone(UTC)  # Postgres knows no offset of 16 hours


def seconds_or_moment(value: Any, *, least: float = 0.0) -> float | datetime:
    """Return the seconds that a number says, `least` or more, or the time that a text names.

    Raises ValueError for others, saying what is wrong with it.

    >>> seconds_or_moment(90)
    90.0
    """
    if isinstance(value, str):
        return moment(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and least <= value <= LONGEST_S):
        raise ValueError(f"{value!r} is neither a number of seconds nor a time")
    return float(value)
