"""Times that applications name as text."""

from datetime import UTC, datetime
from typing import Any

EARLIEST_YEAR, LATEST_YEAR = 1900, 9000


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
