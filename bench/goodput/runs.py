"""The loads of the goodput measurement, and what comes out of them.

To be imported when Django is set up.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any

from django.db import connection

from bench.goodput.plan import BESIDE, BESIDE_RATE, LONG, WITHOUT, Plan, lane
from bench.goodput.verdict import DONE, PROMPT, WITHIN, Found, Outage, Pair, Results
from bench.lanes import figures
from bench.lanes.client import Run, place, turn_breakers_off
from bench.lanes.fates import Rules
from bench.measure import percentile
from bench.runs import tell

WARM_UP = 50  # tasks of a lane before it is measured: they open connections, and the gate
DRAIN = 120.0  # seconds for what is left over once its service is sound
QUICK_CALL = 0.1  # seconds of a call while what counts is the time after a long outage
REACHED = 0.9  # of the steady rate without a breaker: the full rate


class Measurement:
    """Runs a plan; what it found is in `results`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.results = Results(found={failing: Found(failing=failing) for failing in plan.rates})
        self.pool = ThreadPoolExecutor(64)
        self.alone = Lock()  # a load that is measured has the machine to itself

    def run(self) -> Results:
        """Measure everything; the long outages last while loads are measured one after the other."""
        turn_breakers_off([lane(failing, WITHOUT) for failing in self.plan.rates])
        with self._beside():
            long = [
                self._start(self._long_outage, number * self.plan.apart, failing)
                for number, failing in enumerate(self.plan.often)
            ]
            self._steady()
            self._busy()
            _wait(long)
            tell("long outages are over")
            for failing in self.plan.rates:
                self._short_outage(failing)
            self._open_loops()
        return self.results

    def _steady(self) -> None:
        """Work off a backlog at each rate of failures, with a breaker and without.

        Beside them goes one at a sound service: the machine may be another in a minute.
        """
        for failing in self.plan.rates:
            with self.alone:
                runs = self._pair("steady", failing, Rules(failing=failing))
                if failing:
                    runs.append(self._sound(f"steady{failing}"))
                on, off, *healthy = self._work_off(runs, failing)
                found = self.results.found[failing]
                found.steady, found.healthy = self._compared(runs, on, off), (healthy or [off])[0]
                share = found.share(1)
                tell(f"{failing:4.0%} steady: {on:.1f}/s with, {off:.1f}/s without a breaker"
                     f" ({on * share:.2f}, {off * share:.2f} of 1 - p of healthy)")  # fmt: skip
                self._drain(runs)

    def _busy(self) -> None:
        """Work off a backlog where 5 % of the answers ask for a pause of a second."""
        with self.alone:
            runs = [self._begin(lane(0.0), "busy", Rules(busy=0.05)), self._sound("busy")]
            on, off = self._work_off(runs, 0.0)
            self.results.busy = self._compared(runs, on, off)
            tell(f"  5% 503 with Retry-After: {on:.1f}/s, {off:.1f}/s without")
            self._drain(runs)

    def _work_off(self, runs: Sequence[Run], failing: float) -> list[float]:
        """Place a backlog of each run; return the rates at which they are worked off."""
        began = time.time()
        place(runs, range(self.plan.tasks))
        return self._rates(runs, failing, began)

    def _long_outage(self, wait: float, failing: float) -> None:
        """Place a backlog at the beginning of a long outage, and see it through."""
        time.sleep(wait)
        away = Rules(failing=1.0, latency=QUICK_CALL)
        run = self._begin(lane(failing, LONG), "long", away)
        place([run], range(self.plan.tasks))
        time.sleep(self.plan.until_counted)
        run.rule(away)  # counts anew, now that the breaker is open
        time.sleep(self.plan.long_outage - self.plan.until_counted)
        with self.alone:
            counts = run.counts()
            run.rule(Rules(failing=failing, latency=QUICK_CALL))
            healed = time.time()
            wanted = figures.rank(DONE, self.plan.tasks)
            ends = run.wait(wanted, healed + self.plan.patience(1.0, self.plan.tasks))
            seconds = figures.after(ends.values(), DONE, self.plan.tasks, healed)
            self.results.found[failing].outage = Outage(seconds=seconds, probes=counts.peak)
            took = "never" if seconds is None else f"{seconds:.0f} s after its end"
            tell(f"{failing:4.0%} long outage: {DONE:.0%} done {took}; {counts.calls} calls while"
                 f" it lasted, at most {counts.peak} at once")  # fmt: skip
            self._drain([run])

    def _short_outage(self, failing: float) -> None:
        """Do the same with a short outage, with a breaker and without."""
        runs = self._pair("short", failing, Rules(failing=1.0))
        place(runs, range(self.plan.tasks))
        time.sleep(self.plan.short_outage)
        for run in runs:
            run.rule(Rules(failing=failing))
        healed = time.time()
        on, off = self._rates(runs, failing, healed)
        found = self.results.found[failing]
        found.recovered = self._compared(runs, on, off)
        assert found.steady
        full = figures.reached(runs[0].ends().values(), REACHED * found.steady.off, healed)
        found.full_after = full
        tell(f"{failing:4.0%} after an outage: {on:.1f}/s with, {off:.1f}/s without a breaker;"
             f" full rate {'never' if full is None else f'{full:.0f} s'} after its end")  # fmt: skip
        self._drain(runs)

    def _compared(self, runs: Sequence[Run], on: float, off: float) -> Pair:
        return Pair(on=on, off=off, errors=sum(len(run.errors()) for run in runs))

    def _open_loops(self) -> None:
        """Place tasks at a rate that the service can do, at half of the rates of failures at a time."""
        for some in (self.plan.rates[::2], self.plan.rates[1::2]):
            _wait(self._start(self._open_loop, failing) for failing in some)

    def _open_loop(self, failing: float) -> None:
        run = self._begin(lane(failing), "open", Rules(failing=failing))
        healthy = self.results.found[0.0].healthy
        rate = self.plan.load * (1 - failing) * healthy
        run.pace(rate, self.plan.open_loop)
        ends = run.wait(len(run.placed), time.time() + WITHIN)
        share = figures.timely(run.placed, ends, WITHIN)
        self.results.found[failing].timely = share
        tell(f"{failing:4.0%} open loop: {share:.1%} of {len(run.placed)} within {WITHIN:g} s")
        self._drain([run])

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """Have another agent do its own tasks all the while."""
        run = self._begin(BESIDE, "beside", Rules(latency=0.05))
        stop = Event()

        def place_steadily() -> None:
            while not stop.is_set():
                run.pace(BESIDE_RATE, 1.0)

        placing = self._start(place_steadily)
        try:
            yield
        finally:
            stop.set()
            placing.result()
        ends = run.wait(len(run.placed), time.time() + PROMPT)
        self.results.beside = figures.timely(run.placed, ends, PROMPT)
        took = [ends.get(number, math.inf) - at for number, at in run.placed.items()]
        self.results.beside_p95 = percentile(took, 0.95)
        tell(f"beside: {self.results.beside:.1%} of {len(run.placed)} within {PROMPT:g} s")

    def _pair(self, kind: str, failing: float, rules: Rules) -> list[Run]:
        """Begin a run on the lane with a breaker, and its twin on the one without."""
        return [self._begin(name, kind, rules) for name in (lane(failing), lane(failing, WITHOUT))]

    def _sound(self, beside: str) -> Run:
        """Begin a run at a sound service, on a lane without a breaker."""
        return self._begin(lane(0.0, WITHOUT), f"beside-{beside}", Rules())

    def _begin(self, name: str, kind: str, rules: Rules) -> Run:
        """Return a run on a lane that has done something well just now."""
        warm = Run(lane=name, name=f"{name}-{kind}-warm")
        warm.rule(Rules(latency=QUICK_CALL))
        place([warm], range(WARM_UP))
        if len(warm.wait(WARM_UP, time.time() + DRAIN)) < WARM_UP:
            tell(f"{name} is not ready: its service is sound, and yet its tasks are not done")
        run = Run(lane=name, name=f"{name}-{kind}")
        run.rule(rules)
        return run

    def _rates(self, runs: Sequence[Run], failing: float, since: float) -> list[float]:
        """Wait until what counts of each run is done; return tasks a second."""
        count = self.plan.tasks
        until = time.time() + self.plan.patience(1 - failing, count)
        wanted = figures.rank(figures.LAST, count)
        seen = [run.wait(wanted, until) for run in runs]
        return [
            figures.rate([at for at in ends.values() if at >= since], count, until) for ends in seen
        ]

    def _drain(self, runs: Sequence[Run]) -> None:
        """Let what is left end at a sound service, so that the next run has its lane to itself."""
        until = time.time() + DRAIN
        for run in runs:
            run.rule(Rules(latency=QUICK_CALL))
        for run in runs:
            left = len(run.placed) - len(run.wait(len(run.placed) - len(run.errors()), until))
            if left:
                tell(f"{run.name}: {left} tasks are left")

    def _start(self, work: Callable[..., None], *arguments: Any) -> Future[None]:
        def act() -> None:
            try:
                work(*arguments)
            finally:
                connection.close()  # this thread's

        return self.pool.submit(act)


def _wait(started: Any) -> None:
    """Wait for all; raise what one of them raised."""
    for one in list(started):
        one.result()
