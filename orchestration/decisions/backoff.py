"""How long to wait after repeated failures, and how many actions a rate allows (token bucket)."""


def doubled(first: float, cap: float, count: int) -> float:
    """Return `first` seconds for the first failure, twice that for each further one, at most `cap`."""
    return min(cap, first * 2.0 ** min(max(0, count - 1), 30))


def backoff(first: float, cap: float, count: int, chance: float) -> float:
    """Return the seconds to wait after the nth failure: `doubled`, its upper half by `chance` (0 to 1)."""
    return doubled(first, cap, count) * (0.5 + chance / 2)


def refilled(tokens: float, elapsed: float, rate: float, reach: float = 1.0) -> float:
    """Return the tokens of a bucket that had `tokens` and was refilled for `elapsed` seconds.

    At most `reach` seconds' worth is saved up, or one: a long pause is not followed by a burst.
    """
    return min(tokens + max(0.0, elapsed) * rate, max(1.0, rate * reach))
