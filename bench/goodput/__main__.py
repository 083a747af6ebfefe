"""`python -m bench.goodput`: throughput while a partner fails, with a circuit breaker and without."""

import argparse
import json
import sys
from dataclasses import asdict, replace

from bench.console import conclude, interruptible, progress
from bench.goodput.plan import GoodputPlan
from bench.goodput.report import markdown
from bench.lanes.system import lanes
from bench.runs import load

QUICK = GoodputPlan(
    rates=(0.0, 0.1, 0.35),
    tasks=500,
    short_outage=20.0,
    long_outage=60.0,
    until_counted=15.0,
    open_loop=20.0,
    apart=15.0,
)


def main() -> int:
    """Run it; return 1 if a target was missed."""
    return interruptible(measure, parse_options())


def measure(options: argparse.Namespace) -> int:
    """Measure on a stack of its own, and print the results."""
    plan = QUICK if options.quick else GoodputPlan()
    if options.rates:
        plan = replace(plan, rates=sorted({0.0, *(rate / 100 for rate in options.rates)}))
    plan = replace(plan, tasks=options.tasks or plan.tasks)
    with lanes("goodput", plan.policies()) as logs:
        progress(f"servers are up; logs in {logs}")
        from bench.goodput.runs import GoodputMeasurement

        before = load()
        results = GoodputMeasurement(plan).run()
        results.loads = [before, load()]
    missed = results.missed()
    if options.json:
        sys.stdout.write(json.dumps({**asdict(results), "missed": missed}, indent=1) + "\n")
    else:
        sys.stdout.write(markdown(results) + "\n\n")
    return conclude(missed, results.last_line())


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.goodput", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few minutes, rough, for a trial")
    parser.add_argument(
        "--rates", type=float, nargs="+", help="percent of calls that fail; 0 is always measured"
    )
    parser.add_argument("--tasks", type=int, help="number in each load")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
