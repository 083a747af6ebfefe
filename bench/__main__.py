"""`python -m bench`: this engine beside DBOS and Celery, in one run on one set of servers."""

import argparse
import json
import sys

from bench.against import compare
from bench.console import conclude, interruptible, progress
from bench.peers.install import install
from bench.report import last_line, markdown
from bench.runs import QUICK, Benchmark, Plan
from bench.systems import ENGINE, FAMILIES
from bench.testbed import testbed
from sasweb.stack import folders


def main() -> int:
    """Run it; return 1 if a target was missed or the benchmark failed."""
    return interruptible(measure, parse_options())


def measure(options: argparse.Namespace) -> int:
    """Measure on servers of its own; print the results and write them to results.json."""
    folder = folders.data_dir() / "bench"
    try:
        if options.against:
            return compare(options.against, options.at_most)
        if options.only != ENGINE:
            install()
        with testbed(folder) as running:
            progress(f"servers are up; logs in {running.logs}")
            results = Benchmark(running, QUICK if options.quick else Plan(), options.only).run()
    except (AssertionError, RuntimeError, OSError) as error:
        sys.stderr.write(f"The benchmark failed: {error}\n")
        return 1
    as_json = json.dumps(results, indent=1)
    (folder / "results.json").write_text(f"{as_json}\n")
    if options.json:
        sys.stdout.write(f"{as_json}\n")
        return conclude(results["missed"])
    sys.stdout.write(f"{markdown(results)}\n\n")
    return conclude(results["missed"], last_line(results))


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer tasks and runs, for a trial")
    parser.add_argument("--only", choices=FAMILIES, help="one system, and so no ratio")
    parser.add_argument("--against", metavar="COMMIT", help="compare CPU with another commit")
    parser.add_argument(
        "--at-most", type=float, default=0.5, help="the target of --against, as a share of its CPU"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
