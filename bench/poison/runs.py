"""The loads with poison among them. To be imported when Django is set up."""

import time
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from bench.lanes import figures
from bench.lanes.client import LOOK, Run
from bench.lanes.fates import Rules
from bench.poison.plan import Plan, lane
from bench.poison.verdict import Found
from bench.runs import tell

HEALTHY = 120.0  # seconds that the load without poison may take


def measure(plan: Plan) -> list[Found]:
    """Run every load: all kinds side by side, as each has an agent of its own."""
    with ThreadPoolExecutor(len(plan.kinds)) as pool:
        return [
            found
            for poison in plan.counts
            for found in pool.map(lambda kind: _one(plan, kind, poison), plan.kinds)  # noqa: B023
        ]


def _one(plan: Plan, kind: str, poison: int) -> Found:
    try:
        return _measure(plan, kind, poison)
    finally:
        connection.close()  # this thread's


def _measure(plan: Plan, kind: str, poison: int) -> Found:
    """Run one load without poison, then with it; wait for what becomes of it."""
    name = lane(kind, poison)
    rules = Rules(latency=plan.latency)
    healthy = Run(lane=name, name=f"{name}-healthy")
    healthy.rule(rules)
    healthy.place(range(plan.good))
    until = time.time() + HEALTHY
    before = figures.rate(healthy.wait(plan.good, until).values(), plan.good, until)

    run = Run(lane=name, name=name)
    run.rule(rules)
    bad = dict.fromkeys(figures.spread(poison, plan.good), kind)
    placed = time.time()
    run.place(range(plan.good + poison), bad)
    until = placed + plan.within
    ends, errors = _settled(run, plan.good + poison, until)
    blamed = {number: why for number, why in errors.items() if number in bad and why[0]}
    found = Found(
        kind=kind,
        poison=poison,
        good=plan.good,
        rate=figures.rate(ends.values(), plan.good, until),
        healthy=before,
        done=len(ends),
        error_after=max(at for _, at in blamed.values()) - placed
        if len(blamed) == poison
        else None,
        in_error=len(blamed),
        incidents=len({incident for incident, _ in blamed.values()}),
        blamed=sum(number not in bad for number in errors),
    )
    tell(f"{poison} {kind}: good ones at {found.share:.2f} of {before:.0f}/s,"
         f" {found.done}/{plan.good} done; {len(blamed)}/{poison} in error")  # fmt: skip
    return found


def _settled(
    run: Run, count: int, until: float
) -> tuple[dict[int, float], dict[int, tuple[int | None, float]]]:
    """Wait until every task is done or in error, or until a Unix time; return both."""
    while True:
        ends, errors = run.ends(), run.errors()
        if len(ends) + len(errors) == count or time.time() > until:
            return ends, errors
        time.sleep(LOOK)
