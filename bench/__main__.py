"""`python -m bench`: this engine beside DBOS and Celery, in one run on one set of servers."""

import argparse
import json
import signal
import sys
from types import FrameType

from bench.peers.install import install
from bench.report import last_line, markdown
from bench.runs import QUICK, Benchmark, Plan, tell
from bench.stack import stack
from bench.systems import ENGINE, FAMILIES
from sasweb.stack import folders


def main() -> int:
    """Run it; return 1 if a target was missed or nothing could be measured."""
    options = parse_options()
    signal.signal(signal.SIGTERM, _interrupt)
    folder = folders.data_dir() / "bench"
    try:
        if options.only != ENGINE:
            install()
        with stack(folder) as running:
            tell(f"servers are up; logs in {running.logs}")
            results = Benchmark(running, QUICK if options.quick else Plan(), options.only).run()
    except KeyboardInterrupt:
        sys.stderr.write("Stopped; nothing is left running.\n")
        return 130
    except (RuntimeError, OSError) as error:
        sys.stderr.write(f"The benchmark could not be finished: {error}\n")
        return 1
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    if options.json:
        sys.stdout.write(json.dumps(results, indent=1) + "\n")
    else:
        sys.stdout.write(f"{markdown(results)}\n\n{last_line(results)}\n")
    for sentence in results["missed"]:
        sys.stderr.write(f"Missed: {sentence}\n")
    return 1 if results["missed"] else 0


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer tasks and runs, for trying")
    parser.add_argument("--only", choices=FAMILIES, help="one system; there is no ratio then")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args()


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
