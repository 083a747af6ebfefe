"""Outlier detection: an instance steps back while its calls fail and its siblings' succeed (P16).

Pure decisions over plain data; times are seconds on the database's clock. Each instance counts the
results of its own calls by the time at which they began. It compares these counts with its siblings'
reports of the same time. If all fail alike, the service is the cause, and the gate acts. Envoy calls this
outlier ejection; here each instance decides about itself.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..decisions.backoff import doubled

SLICE = 0.5  # seconds that one count covers; also the minimum interval of reports
MEMORY = 20.0  # seconds that counts are kept
FEW = 5  # minimum number of calls for a decision: own failures, a sibling's successes
SICK = 0.5  # minimum share of failures of a sick instance
WELL = 0.1  # maximum share of failures of a healthy sibling
PAUSE = 2.0  # seconds before the first probe; doubles with each that fails
PAUSE_CAP = 60.0

Counts = Mapping[int, tuple[int, int]]  # slice → (good, bad) calls that began in it


@dataclass(frozen=True, kw_only=True)
class Report:
    """What an instance reports to its siblings; `back`: it has stepped back."""

    at: float
    back: bool
    counts: Counts

    def is_recent(self, now: float, within: float) -> bool:
        """Return whether it was made in the last `within` seconds; not if the clock was set since."""
        return abs(now - self.at) < within

    def dump(self) -> bytes:
        """Return the report as JSON."""
        counts = [[start, *both] for start, both in self.counts.items()]
        return json.dumps([self.at, self.back, counts], separators=(",", ":")).encode()

    @classmethod
    def parse(cls, raw: bytes) -> "Report | None":
        """Return the report in `raw`; None if this release cannot read it."""
        try:
            at, back, counts = json.loads(raw)
            slots = {int(start): (int(good), int(bad)) for start, good, bad in counts}
            return cls(at=float(at), back=bool(back), counts=slots)
        except (ValueError, TypeError, OverflowError, RecursionError):
            return None


def is_outlier(mine: Counts, siblings: Iterable[Counts]) -> bool:
    """Return whether an instance's calls fail while those of a sibling succeed.

    Goes back slice by slice as long as most of its calls failed. Siblings' successes count only after
    the slice of its first failure: if the service itself has just failed, no sibling succeeds after it.
    """
    good = bad = 0
    first = None
    for start in sorted(mine, reverse=True):
        good, bad = good + mine[start][0], bad + mine[start][1]
        if bad < SICK * (good + bad):
            return False
        first = start if mine[start][1] else first
        if bad >= FEW and first is not None and any(_is_well(other, first) for other in siblings):
            return True
    return False


def _is_well(counts: Counts, after: int) -> bool:
    good = sum(calls for start, (calls, _) in counts.items() if start > after)
    bad = sum(calls for start, (_, calls) in counts.items() if start > after)
    return good >= FEW and bad <= WELL * (good + bad)


class Participation:
    """Whether this instance takes requests, and the counts behind that decision.

    `back_since` is when it stepped back, if it has. Then it probes with one request at a time, after a
    growing pause, and takes part again when a probe succeeds.
    """

    def __init__(self) -> None:
        self.back_since: float | None = None
        self._counts: dict[int, tuple[int, int]] = {}
        self._probe_at = self._returned_at = 0.0
        self._trips = 0

    def room(self, free: int, under_way: int, now: float) -> int:
        """Return how many requests it may take with `free` free slots."""
        if self.back_since is None:
            return max(0, free)
        return 0 if under_way or now < self._probe_at else 1

    def note(self, began: float, now: float, *, good: bool) -> None:
        """Count a call that has ended."""
        if self.back_since is None:
            start = int(began / SLICE)
            before = self._counts.get(start, (0, 0))
            self._counts[start] = (before[0] + good, before[1] + (not good))
        elif began < self.back_since:
            pass  # it began before the step back, so it is not a probe
        elif good:
            self.take_part(now)
        else:
            self._pause(now)

    def compare(self, siblings: Iterable[Report], now: float) -> bool:
        """Step back if it is an outlier; return whether it did."""
        if self.back_since is not None or not self._counts:
            return False
        working = [
            sibling.counts
            for sibling in siblings
            if not sibling.back and sibling.is_recent(now, MEMORY)
        ]
        if not is_outlier(self._recent(now), working):
            return False
        if now - self._returned_at > MEMORY:
            self._trips = 0
        self.back_since = now
        self._counts = {}
        self._pause(now)
        return True

    def take_part(self, now: float) -> None:
        """Take requests again."""
        self.back_since, self._returned_at = None, now

    def report(self, now: float) -> Report:
        """Return the report for its siblings."""
        return Report(at=now, back=self.back_since is not None, counts=self._recent(now))

    def _pause(self, now: float) -> None:
        self._probe_at = now + doubled(PAUSE, PAUSE_CAP, self._trips + 1)
        self._trips += 1

    def _recent(self, now: float) -> Counts:
        oldest = (now - MEMORY) / SLICE
        if any(start < oldest for start in self._counts):
            self._counts = {at: both for at, both in self._counts.items() if at >= oldest}
        return self._counts


def anyone_takes_part(siblings: Iterable[Report], now: float, within: float) -> bool:
    """Return whether a sibling that has not stepped back reported in the last `within` seconds."""
    return any(not sibling.back and sibling.is_recent(now, within) for sibling in siblings)
