"""Which calls of a run fail, and how: pseudo-random, and equal in two compared runs."""

from dataclasses import dataclass
from enum import StrEnum, auto
from hashlib import blake2b


class Fate(StrEnum):
    """The result of one call. The three FAULTS take as long on average as a good call of 1 s."""

    DONE = auto()
    ERROR = auto()  # the effect, then a 500
    CUT = auto()  # the connection is reset at once
    SILENCE = auto()  # no answer: the caller times out
    BUSY = auto()  # 503 with Retry-After: 1
    FORBIDDEN = auto()  # 403


FAULTS = (Fate.ERROR, Fate.CUT, Fate.SILENCE)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The service's rules for a run: mean seconds of a good call; shares (0 to 1) of failures."""

    latency: float = 1.0
    failing: float = 0.0  # a third each of FAULTS; 1 is a total outage
    busy: float = 0.0


def fate(rules: Rules, number: int, nth: int) -> tuple[Fate, float]:
    """Return the result of the `nth` call for the task `number`, and its seconds.

    Both are the same in every run: a run with a breaker and one without meet the same failures, so that
    their ratio hardly depends on chance. The seconds vary by half, so that calls are not synchronous.
    """
    digest = blake2b(f"{number}:{nth}".encode()).digest()
    chance, other = (int.from_bytes(digest[at : at + 8]) / 2**64 for at in (0, 8))
    seconds = rules.latency * (0.5 + other)
    if chance < rules.failing:
        return FAULTS[int(len(FAULTS) * chance / rules.failing)], seconds
    return (Fate.BUSY if chance < rules.failing + rules.busy else Fate.DONE), seconds
