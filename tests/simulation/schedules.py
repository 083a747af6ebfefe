"""Schedules under faults: each due time comes to one end, and its run is submitted once.

Housekeepers are late, or die at a look; runs take longer than until the next due time; the clock jumps, and
changes for summer time; a row is put back to an earlier position. The pure core decides.
"""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from random import Random

from orchestration.decisions.due_times import Timing
from orchestration.decisions.schedule import (
    CatchUp,
    Overlap,
    Plan,
    Verdict,
    begin,
    decide,
    reference,
)

from .services import Broken, require

# What can be left out: that the position is noted in the transaction that submits; that a reference is taken
# once; that the run before is asked for; that what is late is caught up within its time only.
GUARDS = ("together", "reference", "overlap", "window")
LOOKS = 30  # in each run
# before the clocks change in Europe, or in New York, or not at all
STARTS = (
    datetime(2026, 3, 28, 20, tzinfo=UTC),
    datetime(2026, 11, 1, tzinfo=UTC),
    datetime(2026, 7, 1, tzinfo=UTC),
)
CRONS = {
    "*/5 * * * *": 300.0,
    "0 * * * *": 3600.0,
    "15,45 1-3 * * *": 1800.0,
    "30 2 * * *": 86_400.0,
}
SECOND = timedelta(seconds=1)


def draw(rng: Random, start: datetime) -> tuple[Plan, float]:
    """Return a schedule, and about how many seconds lie between two of its due times."""
    if rng.random() < 0.4:
        every = rng.choice((60, 300, 3600))
        timing, gap = (
            Timing(every=every, start_at=start, jitter=rng.choice((0.0, every / 2))),
            float(every),
        )
    else:
        cron, gap = rng.choice(sorted(CRONS.items()))
        zone = rng.choice(("UTC", "Europe/Berlin", "America/New_York"))
        timing = Timing(cron=cron, zone=zone, jitter=rng.choice((0.0, 120.0)))
    plan = Plan(
        name="nightly", timing=timing, overlap=rng.choice(list(Overlap)),
        catch_up=rng.choice(list(CatchUp)), within=timedelta(seconds=gap * rng.choice((2, 6))),
    )  # fmt: skip
    return plan, gap


class ScheduleRun:
    """A seeded run of one schedule; `go` raises `Broken` where an invariant does not hold."""

    def __init__(self, seed: int, *, broken: frozenset[str] = frozenset()) -> None:
        self.rng, self.broken = Random(seed), broken  # noqa: S311 - it must repeat
        self.start = self.now = self.rng.choice(STARTS)  # as the clock of the database shows it
        self.passed = 0.0  # seconds, by a clock that does not jump
        self.plan, self.gap = draw(self.rng, self.start)
        self.seen = begin(self.plan, self.now)
        self.ends: dict[str, float] = {}  # of runs, by reference
        self.last = ""
        self.submitted: Counter[datetime] = Counter()  # how often each due time was
        self.skipped: Counter[datetime] = Counter()
        self.missed = 0
        self.jumps = self.rng.random() < 0.4
        self.restored_at = self.rng.randrange(LOOKS) if self.rng.random() < 0.2 else LOOKS
        self.restored = False

    def go(self) -> None:
        """Look at the schedule as often as a run has looks, and check what its due times came to."""
        earlier = self.seen, self.last
        for number in range(LOOKS):
            self._wait()
            if number == self.restored_at // 2:
                earlier = self.seen, self.last
            if (
                number == self.restored_at
            ):  # its row is put back, and runs since are known all the same
                (self.seen, self.last), self.restored = earlier, True
            if self.seen.look_at is not None and self.seen.look_at <= self.now:
                self._look()
        self._judge()

    def _wait(self) -> None:
        """Let time pass until the next look; the housekeeper may be away, and the clock may jump."""
        rng = self.rng
        until = (self.seen.look_at - self.now).total_seconds() if self.seen.look_at else self.gap
        seconds = max(until, 0.0) + rng.random()
        if rng.random() < 0.15:
            seconds += self.gap * rng.uniform(0.0, 8.0)
        self.passed += seconds
        self.now += timedelta(seconds=seconds)
        if self.jumps and rng.random() < 0.1:
            self.now += timedelta(seconds=self.gap * rng.uniform(-3.0, 3.0))

    def _look(self) -> None:
        going = self.plan.overlap != Overlap.ALLOW and self._goes_on(self.last)
        dies = self.rng.random() < 0.1
        if dies and "together" not in self.broken:
            return  # nothing of its transaction is there
        asked = going and "overlap" not in self.broken
        plan = self.plan
        if "window" in self.broken:
            plan = replace(plan, catch_up=CatchUp.ALL, within=timedelta(days=3650))
        before, self.seen = self.seen, decide(plan, self.seen.position, self.now, going=asked)
        self.missed += self.seen.missed
        self.submitted.update(self.seen.submitted)
        self.skipped.update(self.seen.skipped)
        if not dies:
            self._submit(before)
        if self.seen.submitted:
            self.last = reference(self.plan.name, self.seen.submitted[-1])

    def _submit(self, before: Verdict) -> None:
        """Submit the runs of due times whose references are free."""
        for due in self.seen.submitted:
            name = reference(self.plan.name, due)
            if name in self.ends and "reference" not in self.broken:
                continue
            require(name not in self.ends, f"{name} is submitted twice")
            require(self.plan.starts(due) <= self.now, f"{name} is submitted before its time")
            waited = due == before.position.waiting
            in_time = waited or self.now - self.plan.starts(due) <= self.plan.window + SECOND
            require(in_time, f"{name} is submitted too late")
            alone = self.plan.overlap == Overlap.ALLOW or not any(map(self._goes_on, self.ends))
            require(alone or self.restored, f"{name} is submitted while another goes on")
            self.ends[name] = self.passed + self.gap * self.rng.choice((0.1, 0.5, 1.5, 4.0))

    def _goes_on(self, name: str) -> bool:
        return self.ends.get(name, 0.0) > self.passed

    def _judge(self) -> None:
        """Check that each due time that has passed came to one end: no other is looked at again."""
        names = {reference(self.plan.name, due) for due in self.submitted}
        require(self.ends.keys() == names, "what is noted is not what was submitted")
        if self.restored:
            return  # some came to their ends twice
        for due, times in (self.submitted + self.skipped).items():
            require(times == 1, f"{due} came to {times} ends")
        position, times = self.seen.position, self.plan.timing.after(self.start)
        passed = takewhile(lambda due: position.due is None or due < position.due, times)
        count = sum(1 for _ in passed) - (position.waiting is not None)
        known = len(self.submitted) + len(self.skipped) + self.missed
        require(known == count, f"of {count} due times {known} came to an end")


def run(seed: int, *, broken: frozenset[str] = frozenset()) -> str | None:
    """Run a seed; return what went wrong, or None."""
    try:
        ScheduleRun(seed, broken=broken).go()
    except Broken as error:
        return str(error)
    return None
