"""Arithmetic on the times when tasks ended, in seconds. Pure."""

import math
from collections.abc import Collection, Mapping, Sequence

FIRST, LAST = 0.1, 0.8  # percentiles of the ends between which a rate is measured
SPAN = 3.0  # over which a rate counts as reached


def rank(share: float, count: int) -> int:
    """Return `share` of `count`, rounded up, and at least one."""
    return max(1, math.ceil(share * count - 1e-9))


def rate(ends: Collection[float], count: int, until: float) -> float:
    """Return tasks per second between the 10th and the 80th percentile of `count`.

    If fewer had ended by `until`, the rate is over the whole time up to it.
    """
    ordered = sorted(ends)
    first, last = rank(FIRST, count), rank(LAST, count)
    if len(ordered) <= first:
        return 0.0
    if len(ordered) < last:
        return (len(ordered) - first) / (until - ordered[first - 1])
    return (last - first) / (ordered[last - 1] - ordered[first - 1])


def timely(placed: Mapping[int, float], ends: Mapping[int, float], within: float) -> float:
    """Return the share of tasks that ended within the time `within`."""
    done = sum(ends.get(number, math.inf) - at <= within for number, at in placed.items())
    return done / len(placed)


def reached(ends: Collection[float], target: float, since: float) -> float | None:
    """Return the seconds after `since` until the rate was `wanted` over `SPAN` seconds."""
    ordered = sorted(at for at in ends if at >= since)
    needed = math.ceil(target * SPAN)
    for index in range(len(ordered) - needed):
        if ordered[index + needed] - ordered[index] <= SPAN:
            return ordered[index] - since
    return None


def after(ends: Collection[float], share: float, count: int, since: float) -> float | None:
    """Return the seconds after `since` until `share` of `count` had ended; None if never."""
    ordered, last = sorted(ends), rank(share, count)
    return ordered[last - 1] - since if len(ordered) >= last else None


def spread(few: int, many: int) -> Sequence[int]:
    """Return the positions of `few` among `few + many`: half come first, the others evenly."""
    first = few // 2
    rest = few - first
    return [
        *range(first),
        *(first + (2 * index + 1) * (many + rest) // (2 * rest) for index in range(rest)),
    ]
