"""What to do about a step that failed or expired: a pure decision (P11, P26)."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The part of an agent's policy that recovery looks at; times in seconds."""

    failure_threshold: int
    backoff: float
    backoff_cap: float


@dataclass(frozen=True, kw_only=True)
class Retry:
    """Make the step pending again, to be claimed after `wait` seconds."""

    failure_count: int
    wait: float


@dataclass(frozen=True, kw_only=True)
class GiveUp:
    """Set the step to error and alert an operator: the fault is not transient."""

    failure_count: int


def decide(thresholds: Thresholds, failure_count: int, chance: float) -> Retry | GiveUp:
    """Return what follows the next failure of a step that failed `failure_count` times before.

    The wait doubles with each failure up to the cap; `chance` in [0, 1) spreads it over the upper
    half of the interval ("equal jitter"), so that steps that failed together do not return
    together and none returns at once.
    """
    count = failure_count + 1
    if count >= thresholds.failure_threshold:
        return GiveUp(failure_count=count)
    ceiling = min(thresholds.backoff_cap, thresholds.backoff * 2 ** min(count - 1, 30))
    return Retry(failure_count=count, wait=ceiling * (0.5 + chance / 2))
