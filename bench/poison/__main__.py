"""`python -m bench.poison`: how a few requests that always fail slow the others."""

import argparse
import json
import sys
from dataclasses import asdict

from bench.console import conclude, interruptible, progress
from bench.lanes.system import lanes
from bench.poison.plan import COUNTS, KINDS, PoisonPlan
from bench.poison.verdict import WITHIN, last_line, markdown


def main() -> int:
    """Run it; return 1 if a target was missed."""
    return interruptible(measure, parse_options())


def measure(options: argparse.Namespace) -> int:
    """Measure on a stack of its own, and print the results."""
    counts = options.counts or (COUNTS[:2] if options.quick else COUNTS)
    plan = PoisonPlan(kinds=options.kinds, counts=counts, within=90.0 if options.quick else WITHIN)
    with lanes("poison", plan.policies(), isolated=True) as logs:
        progress(f"servers are up; logs in {logs}")
        from bench.poison.runs import PoisonMeasurement

        results = PoisonMeasurement(plan).run()
    missed = [sentence for result in results for sentence in result.missed()]
    if options.json:
        data = {"found": [asdict(result) for result in results], "missed": missed}
        sys.stdout.write(json.dumps(data, indent=1) + "\n")
    else:
        sys.stdout.write(markdown(results) + "\n\n")
    return conclude(missed, last_line(results))


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.poison", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer, and for 90 s, for a trial")
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--counts", type=int, nargs="+", help="poison among the good tasks")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
