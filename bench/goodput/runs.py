"""The loads of the goodput measurement. Requires django.setup()."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Lock

from bench.console import progress
from bench.goodput.plan import BESIDE, BESIDE_RATE, LONG, WITHOUT, GoodputPlan, lane
from bench.goodput.verdict import DONE, PROMPT, WITHIN, Outage, Pair, RateResult, Results
from bench.lanes import figures
from bench.lanes.client import Run, in_thread, place, turn_breakers_off
from bench.lanes.fates import Rules
from bench.measure import percentile

WARM_UP = 50  # tasks of a lane before it is measured: they open connections, and close the breaker
DRAIN = 120.0  # seconds for the remaining tasks once their service is healthy
QUICK_CALL = 0.1  # seconds of a call after a long outage
REACHED = 0.9  # share of the steady rate without a breaker that is the full rate


class GoodputMeasurement:
    """Runs a plan and collects the results."""

    def __init__(self, plan: GoodputPlan) -> None:
        self.plan = plan
        self.results = Results(
            by_rate={failing: RateResult(failing=failing) for failing in plan.rates}
        )
        self.pool = ThreadPoolExecutor(64)
        self.alone = Lock()  # held while a load is measured alone

    def run(self) -> Results:
        """Measure all loads one after the other, during the long outages."""
        turn_breakers_off([lane(failing, WITHOUT) for failing in self.plan.rates])
        with self._beside():
            long = [
                in_thread(self.pool, self._long_outage, number * self.plan.apart, failing)
                for number, failing in enumerate(self.plan.often)
            ]
            self._steady()
            self._busy()
            _wait(long)
            progress("long outages are over")
            for failing in self.plan.rates:
                self._short_outage(failing)
            self._open_loops()
        return self.results

    def _steady(self) -> None:
        """Process a backlog at each failure rate, with a breaker and without.

        Another one runs beside them at a healthy service, as the machine's speed varies.
        """
        for failing in self.plan.rates:
            with self.alone:
                runs = self._pair("steady", failing, Rules(failing=failing))
                if failing:
                    runs.append(self._healthy(f"steady{failing}"))
                on, off, *healthy = self._process_backlog(runs, failing)
                result = self.results.by_rate[failing]
                result.steady, result.healthy = self._compared(runs, on, off), (healthy or [off])[0]
                share = result.share(1)
                progress(f"{failing:4.0%} steady: {on:.1f}/s with, {off:.1f}/s without a breaker"
                     f" ({on * share:.2f}, {off * share:.2f} of 1 - p of healthy)")  # fmt: skip
                self._drain(runs)

    def _busy(self) -> None:
        """Process a backlog while 5 % of the answers ask for a pause of a second."""
        with self.alone:
            runs = [self._begin(lane(0.0), "busy", Rules(busy=0.05)), self._healthy("busy")]
            on, off = self._process_backlog(runs, 0.0)
            self.results.busy = self._compared(runs, on, off)
            progress(f"  5% 503 with Retry-After: {on:.1f}/s, {off:.1f}/s without")
            self._drain(runs)

    def _process_backlog(self, runs: Sequence[Run], failing: float) -> list[float]:
        """Submit a backlog for each run; return the rates at which they are processed."""
        began = time.time()
        place(runs, range(self.plan.tasks))
        return self._rates(runs, failing, began)

    def _long_outage(self, wait: float, failing: float) -> None:
        """Submit a backlog at the beginning of a long outage; measure the time after its end."""
        time.sleep(wait)
        away = Rules(failing=1.0, latency=QUICK_CALL)
        run = self._begin(lane(failing, LONG), "long", away)
        place([run], range(self.plan.tasks))
        time.sleep(self.plan.until_counted)
        run.rule(away)  # resets the counts, now that the breaker is open
        time.sleep(self.plan.long_outage - self.plan.until_counted)
        with self.alone:
            counts = run.counts()
            run.rule(Rules(failing=failing, latency=QUICK_CALL))
            healed = time.time()
            needed = figures.rank(DONE, self.plan.tasks)
            ends = run.wait(needed, healed + self.plan.patience(1.0, self.plan.tasks))
            seconds = figures.after(ends.values(), DONE, self.plan.tasks, healed)
            self.results.by_rate[failing].outage = Outage(seconds=seconds, probes=counts.peak)
            took = "never" if seconds is None else f"{seconds:.0f} s after its end"
            progress(f"{failing:4.0%} long outage: {DONE:.0%} done {took}; {counts.calls} calls while"
                 f" it lasted, at most {counts.peak} at once")  # fmt: skip
            self._drain([run])

    def _short_outage(self, failing: float) -> None:
        """Measure the rates after a short outage, with a breaker and without."""
        runs = self._pair("short", failing, Rules(failing=1.0))
        place(runs, range(self.plan.tasks))
        time.sleep(self.plan.short_outage)
        for run in runs:
            run.rule(Rules(failing=failing))
        healed = time.time()
        on, off = self._rates(runs, failing, healed)
        result = self.results.by_rate[failing]
        result.recovered = self._compared(runs, on, off)
        assert result.steady
        full = figures.reached(runs[0].ends().values(), REACHED * result.steady.off, healed)
        result.full_after = full
        progress(f"{failing:4.0%} after an outage: {on:.1f}/s with, {off:.1f}/s without a breaker;"
             f" full rate {'never' if full is None else f'{full:.0f} s'} after its end")  # fmt: skip
        self._drain(runs)

    def _compared(self, runs: Sequence[Run], on: float, off: float) -> Pair:
        return Pair(on=on, off=off, errors=sum(len(run.errors()) for run in runs))

    def _open_loops(self) -> None:
        """Submit tasks below the service's capacity, at half of the failure rates at once."""
        for rates in (self.plan.rates[::2], self.plan.rates[1::2]):
            _wait(in_thread(self.pool, self._open_loop, failing) for failing in rates)

    def _open_loop(self, failing: float) -> None:
        run = self._begin(lane(failing), "open", Rules(failing=failing))
        healthy = self.results.by_rate[0.0].healthy
        rate = self.plan.load * (1 - failing) * healthy
        run.pace(rate, self.plan.open_loop)
        ends = run.wait(len(run.placed), time.time() + WITHIN)
        share = figures.timely(run.placed, ends, WITHIN)
        self.results.by_rate[failing].timely = share
        progress(f"{failing:4.0%} open loop: {share:.1%} of {len(run.placed)} within {WITHIN:g} s")
        self._drain([run])

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """Run another agent's tasks at the same time."""
        run = self._begin(BESIDE, "beside", Rules(latency=0.05))
        stop = Event()

        def place_steadily() -> None:
            while not stop.is_set():
                run.pace(BESIDE_RATE, 1.0)

        placing = in_thread(self.pool, place_steadily)
        try:
            yield
        finally:
            stop.set()
            placing.result()
        ends = run.wait(len(run.placed), time.time() + PROMPT)
        self.results.beside = figures.timely(run.placed, ends, PROMPT)
        took = [ends.get(number, math.inf) - at for number, at in run.placed.items()]
        self.results.beside_p95 = percentile(took, 0.95)
        progress(f"beside: {self.results.beside:.1%} of {len(run.placed)} within {PROMPT:g} s")

    def _pair(self, kind: str, failing: float, rules: Rules) -> list[Run]:
        """Begin one run on the lane with a breaker, and an equal one on the lane without."""
        return [self._begin(name, kind, rules) for name in (lane(failing), lane(failing, WITHOUT))]

    def _healthy(self, beside: str) -> Run:
        """Begin a run at a healthy service, on a lane without a breaker."""
        return self._begin(lane(0.0, WITHOUT), f"beside-{beside}", Rules())

    def _begin(self, name: str, kind: str, rules: Rules) -> Run:
        """Return a run on a lane that has just processed some tasks."""
        warm = Run(lane=name, name=f"{name}-{kind}-warm")
        warm.rule(Rules(latency=QUICK_CALL))
        place([warm], range(WARM_UP))
        if len(warm.wait(WARM_UP, time.time() + DRAIN)) < WARM_UP:
            progress(f"{name} is not ready: its service is healthy, but its tasks have not ended")
        run = Run(lane=name, name=f"{name}-{kind}")
        run.rule(rules)
        return run

    def _rates(self, runs: Sequence[Run], failing: float, since: float) -> list[float]:
        """Wait until enough tasks of each run have ended; return tasks per second."""
        count = self.plan.tasks
        until = time.time() + self.plan.patience(1 - failing, count)
        needed = figures.rank(figures.LAST, count)
        seen = [run.wait(needed, until) for run in runs]
        return [
            figures.rate([at for at in ends.values() if at >= since], count, until) for ends in seen
        ]

    def _drain(self, runs: Sequence[Run]) -> None:
        """Wait until the remaining tasks end at a healthy service, to free the lanes for the next runs."""
        until = time.time() + DRAIN
        for run in runs:
            run.rule(Rules(latency=QUICK_CALL))
        for run in runs:
            left = len(run.placed) - len(run.wait(len(run.placed) - len(run.errors()), until))
            if left:
                progress(f"{run.name}: {left} tasks are left")


def _wait(started: Iterable[Future[None]]) -> None:
    """Wait for all; raise the first exception."""
    for future in list(started):
        future.result()
