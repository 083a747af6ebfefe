"""Histograms of durations: counts in buckets, which can be added and give percentiles.

Bounds are a factor of 2^(1/4) apart, from a millisecond to a week. So a percentile from the buckets is
within a tenth of the true one, at any scale.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

STEPS = 4  # buckets in each doubling
BOUNDS = tuple(0.001 * 2 ** (place / STEPS) for place in range(118))  # seconds, rising
SIZE = len(BOUNDS) + 1  # below the first, between each two, from the last on

Buckets = Sequence[int]


def bucket(seconds: float) -> int:
    """Return the bucket of a duration, as `width_bucket` does in the database."""
    return bisect_right(BOUNDS, seconds)


def buckets(lengths: Iterable[float]) -> list[int]:
    """Return the histogram of durations."""
    return dense((bucket(length), 1) for length in lengths)


def dense(counts: Iterable[tuple[int, int]]) -> list[int]:
    """Return one count per bucket, from (bucket, count) pairs."""
    buckets = [0] * SIZE
    for place, count in counts:
        buckets[place] += count
    return buckets


def merged(parts: Iterable[Buckets]) -> list[int]:
    """Return the sum of histograms."""
    buckets = [0] * SIZE
    for part in parts:
        for place, count in enumerate(part):
            if count:
                buckets[place] += count
    return buckets


def percentile(counts: Buckets, share: float) -> float | None:
    """Return the seconds below which `share` (0 to 1) of the durations are; None for no durations.

    Durations are assumed to be evenly distributed inside a bucket.
    """
    total = sum(counts)
    if not total:
        return None
    target = share * total
    below = 0
    for place, count in enumerate(counts):
        if count and below + count >= target:
            low = BOUNDS[place - 1] if place else 0.0
            high = BOUNDS[min(place, len(BOUNDS) - 1)]
            return low + (high - low) * max(0.0, target - below) / count
        below += count
    return BOUNDS[-1]
