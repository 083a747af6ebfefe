"""One agent under steady failure, with the gate's and the recovery's real rules: how much gets done.

A service fails a share of its calls, a third each: an error at once, a cut connection, a time-out. Each
attempt makes two calls. Time is simulated; a run of thousands of steps takes a fraction of a second.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from orchestration.agents.outliers import SLICE, Participation, Report
from orchestration.decisions.gate import (
    GateView,
    Limits,
    Observation,
    answered_since,
    excuses,
    observe,
    room,
    sent,
)
from orchestration.decisions.recovery import (
    INSTANCE_SICK,
    Failure,
    GiveUp,
    Retry,
    Thresholds,
    decide,
)
from orchestration.states import GateState, Health, Outcome

CALL, CUT, TIMEOUT = 0.1, 0.05, 2.0  # seconds that a call takes: done or refused, cut, unanswered
QUICK_RETRY = 0.1  # seconds between the two calls of an attempt
TURN = 0.02  # seconds between two turns of the scheduler
LIMITS = Limits(
    window=100, rate=None, time_allowed=10.0, calls=20, failures=5, share=0.5, pause=5.0,
    pause_cap=15.0, retry_after_cap=3600.0,
)  # fmt: skip
OFF = replace(LIMITS, failures=10**9)
THRESHOLDS = Thresholds(failure_threshold=1000, backoff=1.0, backoff_cap=60.0, undo_threshold=1000)


@dataclass(kw_only=True)
class SimStep:
    """A step."""

    number: int
    placed: float
    poison: bool = False
    attempt: int = 0
    failures: int = 0
    failed_at: float | None = None
    own_trouble: bool = False
    done_at: float | None = None
    error_at: float | None = None


@dataclass(kw_only=True)
class Run:
    """One agent, its steps and its service."""

    rate: Callable[[float], float]  # share of calls that fails at a time
    limits: Limits = LIMITS
    thresholds: Thresholds = THRESHOLDS
    seed: int = 0
    now: float = 0.0
    gate: GateView = field(default_factory=GateView)
    states: list[tuple[float, str]] = field(default_factory=list)
    # while the breaker was not closed: requests in flight that were sent since
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)  # noqa: S311 - a simulation
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = count()
        self.pending: deque[SimStep] = deque()
        self.in_flight: dict[int, float] = {}
        self.heard: list[tuple[SimStep, float, bool, str]] = []
        self.left = 0

    def at(self, when: float, do: Callable[[], None]) -> None:
        """Schedule a function."""
        heapq.heappush(self.events, (when, next(self.numbers), do))

    def place(self, steps: Iterable[SimStep]) -> None:
        """Schedule steps to become pending at their time."""
        for step in steps:
            self.left += 1
            self.at(step.placed, lambda step=step: self.pending.append(step))

    def go(self, until: float = 3600.0) -> "Run":
        """Run until every step has ended, or to a time."""
        self.at(0.0, self._turn)
        while self.events and self.left and self.now < until:
            self.now, _, do = heapq.heappop(self.events)
            do()
        return self

    def _turn(self) -> None:
        heard, self.heard = self.heard, []
        outcomes = [
            Observation(health=Health.GOOD if good else Health.BAD, sent_at=at)
            for step, at, good, code in heard
            if (good or not step.own_trouble) and code != INSTANCE_SICK
        ]
        self._move(observe(self.gate, self.limits, outcomes, self.now, len(self.in_flight)))
        for step, _, good, code in heard:
            self._end(step, good, code)
        places = room(self.gate, self.limits, self._counted(), self.now)
        taken = self._take(places)
        self._move(sent(self.gate, self.limits, len(taken), self.now))
        for step in taken:
            self._send(step)
        if self.gate.state != GateState.CLOSED:
            self.most_at_once = max(self.most_at_once, self._counted())
        self.at(self.now + TURN, self._turn)

    def _counted(self) -> int:
        since = self.gate.opened_at if self.gate.state != GateState.CLOSED else None
        return sum(1 for at in self.in_flight.values() if since is None or at >= since)

    def _take(self, places: int) -> list[SimStep]:
        if self.gate.state in {GateState.OPEN, GateState.HALF_OPEN} and places and self.pending:
            best = min(self.pending, key=lambda step: (step.own_trouble, step.attempt, step.number))
            self.pending.remove(best)
            return [best]
        return [self.pending.popleft() for _ in range(min(places, len(self.pending)))]

    def _send(self, step: SimStep) -> None:
        step.attempt += 1
        took, good = self._call(step)
        self.in_flight[step.number] = self.now
        self.at(self.now + took, lambda at=self.now: self._back(step, at, good))

    def _call(self, step: SimStep) -> tuple[float, bool]:
        """Return how long an attempt takes, and whether it succeeds."""
        took, good = 0.0, False
        for tried in range(2):
            took += QUICK_RETRY * tried
            p = 1.0 if step.poison else self.rate(self.now + took)
            draw = self.rng.random()
            good = draw >= p
            third = 0.0 if p >= 1 and step.poison else draw / p * 3 if p else 0.0
            took += CALL if good or third < 1 else CUT if third < 2 else TIMEOUT
            if good:
                break
        return took, good

    def _back(self, step: SimStep, at: float, good: bool, code: str = "") -> None:
        self.in_flight.pop(step.number)
        self.heard.append((step, at, good, code))

    def _end(self, step: SimStep, good: bool, code: str) -> None:
        if good:
            step.done_at = self.now
            self.left -= 1
            return
        step.own_trouble |= code != INSTANCE_SICK and answered_since(self.gate, step.failed_at)
        failure = Failure(
            failure_count=step.failures, outcome=Outcome.UNKNOWN, code=code,
            excused=not step.own_trouble and excuses(self.gate),
        )  # fmt: skip
        step.failed_at = self.now
        match decide(self.thresholds, failure, self.rng.random()):
            case Retry() as again:
                step.failures = again.failure_count
                self.at(self.now + again.wait, lambda: self.pending.append(step))
            case GiveUp():
                step.error_at = self.now
                self.left -= 1

    def _move(self, to: GateView) -> None:
        if to.state != self.gate.state:
            self.states.append((self.now, to.state))
        self.gate = to


@dataclass(kw_only=True)
class Instances(Run):
    """The same with several workers of the agent, which may each step back.

    `sick` is whether a worker's calls fail at a time, by its number: at once, so that it is free for
    the next sooner than the others.
    """

    sick: Callable[[int, float], bool] = lambda number, now: False
    workers: int = 3
    slots: int = 100
    backs: list[tuple[float, int]] = field(default_factory=list)  # who stepped back, and when

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parts = [Participation() for _ in range(self.workers)]
        self.under_way = [0] * self.workers
        self.done = [0] * self.workers
        self.reports: dict[int, bytes] = {}
        self.reported = [0.0] * self.workers
        self.inbox: deque[SimStep] = deque()

    def _send(self, step: SimStep) -> None:
        step.attempt += 1
        self.in_flight[step.number] = self.now
        self.inbox.append(step)
        self._deal()

    def _turn(self) -> None:
        super()._turn()
        self._deal()

    def _deal(self) -> None:
        while self.inbox and (
            able := [worker for worker in range(self.workers) if self._room(worker)]
        ):
            self._perform(self.rng.choice(able), self.inbox.popleft())

    def _room(self, number: int) -> int:
        under_way = self.under_way[number]
        return self.parts[number].room(self.slots - under_way, under_way, self.now)

    def _perform(self, number: int, step: SimStep) -> None:
        took, good = self._call(step)
        if self.sick(number, self.now):
            took, good = QUICK_RETRY, False  # refused at once, both times
        self.under_way[number] += 1
        began, sent_at = self.now, self.in_flight[step.number]
        self.at(self.now + took, lambda: self._reply(number, step, began, sent_at, good))

    def _reply(self, number: int, step: SimStep, began: float, sent_at: float, good: bool) -> None:
        self.under_way[number] -= 1
        self.done[number] += good
        part = self.parts[number]
        part.note(began, self.now, good=good)
        if self.now - self.reported[number] >= SLICE:
            self.reported[number] = self.now
            self.reports[number] = part.report(self.now).dump()
        others = [Report.parse(raw) for instance, raw in self.reports.items() if instance != number]
        if part.compare([report for report in others if report], self.now):
            self.backs.append((self.now, number))
        excused = part.back_since is not None and not good
        self._back(step, sent_at, good, INSTANCE_SICK if excused else "")
