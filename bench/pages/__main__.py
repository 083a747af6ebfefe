"""`python -m bench.pages`: the time to first byte of every page of the dashboard at a million tasks.

Keeps its database in DATA_DIR/pages (several GB), for later runs.
"""

import argparse
import sys

from bench import filled
from bench.console import progress
from sasweb.stack import folders

FOLDER = folders.data_dir() / "pages"


def main() -> int:
    """Fill the database if it is empty, measure, print the table; return 1 if a page is slow."""
    options = parse_options()
    with filled.database(FOLDER, fresh=options.fresh):
        _fill(options.tasks, options.failures)
        from bench.pages.measure import table
        from bench.pages.server import timings

        def is_selected(name: str) -> bool:
            return options.only in name and not (options.skip and options.skip in name)

        measured = timings(options.rounds, is_selected)
    sys.stdout.write(table(measured) + "\n")
    slow = [timing.page.name for timing in measured if not timing.good]
    progress(f"{len(measured)} pages, {len(slow)} slow or with a wrong status")
    return 1 if slow else 0


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000, help="to fill it with")
    parser.add_argument("--failures", type=int, default=200_000, help="number of them in error")
    parser.add_argument("--rounds", type=int, default=20, help="requests of each page")
    parser.add_argument("--only", default="", help="measure only pages whose name contains this")
    parser.add_argument("--skip", default="", help="omit pages whose name contains this")
    parser.add_argument(
        "--fresh", action="store_true", help="delete the database and fill it again"
    )
    return parser.parse_args()


def _fill(tasks: int, failures: int) -> None:
    from bench.pages.seed import seed
    from orchestration.models import Task

    if not Task.objects.exists():
        seed(tasks, failures, progress)


if __name__ == "__main__":
    sys.exit(main())
