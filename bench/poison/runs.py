"""The loads with poison among them. Requires django.setup()."""

import time
from concurrent.futures import Future, ThreadPoolExecutor

from bench.console import progress
from bench.lanes import figures
from bench.lanes.client import LOOK, Run, in_thread, place
from bench.lanes.fates import Rules
from bench.poison.plan import HEALTHY, PoisonPlan, lane
from bench.poison.verdict import PoisonResult


class PoisonMeasurement:
    """Runs a plan: all kinds side by side, each at an agent of its own, beside one without poison."""

    def __init__(self, plan: PoisonPlan) -> None:
        self.plan = plan
        self.pool = ThreadPoolExecutor(1 + len(plan.kinds))

    def run(self) -> list[PoisonResult]:
        """Measure everything."""
        results: list[PoisonResult] = []
        for poison in self.plan.counts:
            healthy = in_thread(self.pool, self._healthy, poison)
            loads = [
                in_thread(self.pool, self._load, kind, poison, healthy) for kind in self.plan.kinds
            ]
            results += [load.result() for load in loads]
        return results

    def _healthy(self, poison: int) -> float:
        """Run the load without poison; return tasks per second."""
        run = self._begin(HEALTHY, f"{HEALTHY}-beside-{poison}")
        place([run], range(self.plan.good))
        until = time.time() + self.plan.within
        return figures.rate(run.wait(self.plan.good, until).values(), self.plan.good, until)

    def _load(self, kind: str, poison: int, healthy: Future[float]) -> PoisonResult:
        """Run a load with poison until all its tasks have ended, or time is up."""
        good, name = self.plan.good, lane(kind, poison)
        run = self._begin(name, name)
        bad = dict.fromkeys(figures.spread(poison, good), kind)
        placed = time.time()
        place([run], range(good + poison), bad)
        ends, errors = self._settled(run, good + poison, placed + self.plan.within)
        until = time.time()
        ended = {number: at for number, (incident, at) in errors.items() if incident}
        times = [ended[number] for number in bad if number in ended]
        result = PoisonResult(
            kind=kind,
            poison=poison,
            good=good,
            rate=figures.rate(ends.values(), good, until),
            healthy=healthy.result(),
            done=len(ends),
            error_after=max(times) - placed if len(times) == poison else None,
            in_error=len(times),
            incidents=len({errors[number][0] for number in bad if number in ended}),
            blamed=sum(number not in bad for number in errors),
        )
        took = "" if result.error_after is None else f" after {result.error_after:.0f} s"
        progress(f"{poison:2} {kind}: good tasks at {result.share:.2f} of {result.healthy:.0f}/s,"
             f" {result.done}/{good} done, {result.blamed} in error;"
             f" {result.in_error}/{poison} of the poison in error{took}")  # fmt: skip
        return result

    def _begin(self, lane: str, name: str) -> Run:
        run = Run(lane=lane, name=name)
        run.rule(Rules(latency=self.plan.latency))
        return run

    def _settled(
        self, run: Run, count: int, until: float
    ) -> tuple[dict[int, float], dict[int, tuple[int | None, float]]]:
        """Wait until every task is processed or in error, or until a time; return both."""
        while True:
            ends, errors = run.ends(), run.errors()
            if len(ends) + len(errors) == count or time.time() > until:
                return ends, errors
            time.sleep(LOOK)
