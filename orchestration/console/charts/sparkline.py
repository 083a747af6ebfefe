"""A small bar chart without axes, as plain numbers for an SVG, with its text alternative."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

BAR, GAP, HEIGHT = 4, 1, 24  # units of the drawing
LEAST = 1.5  # a bar stays visible however small its share is


@dataclass(frozen=True, kw_only=True)
class Sparkline:
    """The drawing: `bars` are (x, y, height); `words` say what it shows."""

    width: int
    height: int
    bars: Sequence[tuple[int, str, str]]
    words: str


def sparkline(values: Sequence[int], words: str) -> Sparkline:
    """Return the drawing of some counts, one bar each; `words` are its text alternative."""
    most = max(values, default=0)
    bars = []
    for place, count in enumerate(values):
        if count:
            height = max(LEAST, HEIGHT * count / most)
            bars.append((place * (BAR + GAP), f"{HEIGHT - height:.1f}", f"{height:.1f}"))
    return Sparkline(
        width=max(BAR, len(values) * (BAR + GAP) - GAP), height=HEIGHT, bars=bars, words=words
    )


def by_hour(trend: Sequence[int], now: datetime) -> Sparkline:
    """Return the drawing of the failures in each of the last hours."""
    return sparkline(trend, _words(trend, max(trend, default=0), now))


def hours(trend: Sequence[int], now: datetime) -> list[tuple[datetime, int]]:
    """Return the same as a table: each hour in which something happened, the latest first."""
    this = now.replace(minute=0, second=0, microsecond=0)
    times = [this - timedelta(hours=back) for back in range(len(trend))]
    return [(hour, count) for hour, count in zip(times, reversed(trend), strict=True) if count]


def _words(trend: Sequence[int], most: int, now: datetime) -> str:
    if not most:
        return f"no failure in {len(trend)} h"
    back = len(trend) - 1 - max(place for place, count in enumerate(trend) if count == most)
    peak = now - timedelta(hours=back)
    total = sum(trend)
    return (
        f"{total:,} failure{'' if total == 1 else 's'} in {len(trend)} h, "
        f"at most {most:,} in an hour ({peak:%H}:00 UTC)"
    )
