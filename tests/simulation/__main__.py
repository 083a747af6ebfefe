"""python -m tests.simulation --seeds 10000 --start 0, or --seed 17 --trace."""

import argparse
import os
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()  # the rules are imported with models

from . import schedules  # noqa: E402
from .run import Run, run  # noqa: E402
from .services import Broken  # noqa: E402
from .world import GUARDS  # noqa: E402

ALL_GUARDS = (*GUARDS, *schedules.GUARDS)


def of_schedule(seed: int, broken: frozenset[str]) -> str | None:
    """Run a schedule by a seed; return what went wrong, or None."""
    wrong = schedules.run(seed, broken=broken & set(schedules.GUARDS))
    return wrong and f"schedule: {wrong}"


def main() -> int:
    """Run seeds; say which went wrong, and how to see it again."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--start", type=int, default=0, help="the first")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--trace", action="store_true", help="print what happens in it")
    parser.add_argument(
        "--without", action="append", default=[], choices=ALL_GUARDS, help="a guard"
    )
    options = parser.parse_args()
    broken = frozenset(options.without)
    if options.seed is not None:
        return run_seed(options.seed, broken, trace=options.trace)
    started, failed = time.perf_counter(), 0
    for seed in range(options.start, options.start + options.seeds):
        wrong = run(seed, broken=broken & set(GUARDS)) or of_schedule(seed, broken)
        if wrong:
            failed += 1
            print(f"seed {seed}: {wrong}", flush=True)
    seconds = time.perf_counter() - started
    print(f"{options.seeds} seeds, {failed} went wrong, {seconds:.1f} s")
    return bool(failed)


def run_seed(seed: int, broken: frozenset[str], *, trace: bool) -> int:
    """Run one seed, with or without its events."""
    simulation = Run(seed, broken=broken & set(GUARDS), trace=trace)
    wrong = of_schedule(seed, broken)
    try:
        simulation.go()
    except Broken as error:
        wrong = str(error)
    for line in simulation.world.trace or ():
        print(line)
    for task in simulation.world.store.tasks.values():
        print(f"{task.id}: {task.state}")
    print(f"seed {seed}: {wrong or 'good'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
