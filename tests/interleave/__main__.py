"""python -m tests.interleave --seeds 10000 --start 0, or --seed 17 --trace, or --seed 17 --shrink."""

import argparse
import multiprocessing
import os
import sys
import time
from contextlib import suppress

from . import seeds
from .choices import KINDS

SAY_EVERY_S = 60.0  # how far the run is


def main() -> int:
    """Run seeds; say which went wrong, and how to see it again."""
    parser = argparse.ArgumentParser(prog="python -m tests.interleave", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--start", type=int, default=0, help="the first")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--kind", choices=list(KINDS), default="", help="of all runs")
    parser.add_argument("--trace", action="store_true", help="print what happens in it")
    parser.add_argument(
        "--shrink",
        action="store_true",
        help="look for the plainest run that goes wrong so, and print it",
    )
    parser.add_argument("--log", action="store_true", help="show what the product logs")
    parser.add_argument(
        "--without",
        default="",
        help="a guard of the product to leave out (guards.py): runs must go wrong",
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count(),
        help="how many run seeds, each on servers of its own",
    )
    options = parser.parse_args()
    if options.seed is not None:
        options.start, options.seeds, options.processes = options.seed, 1, 1
    started = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    failed, ended = context.Value("i", 0), context.Value("i", 0)
    parts = [
        context.Process(target=seeds.part, args=(options, number, failed, ended))
        for number in range(options.processes)
    ]
    with suppress(KeyboardInterrupt):
        for part in parts:
            part.start()
        for part in parts:
            while part.is_alive():
                part.join(SAY_EVERY_S)
                if part.is_alive():
                    print(_so_far(ended.value, failed.value, started), file=sys.stderr, flush=True)
    count, wrong = ended.value, failed.value
    print(_so_far(count, wrong, started))
    if count < options.seeds:
        print(f"{options.seeds - count:,} seeds were not run")
    return int(wrong > 0 or count < options.seeds)


def _so_far(count: int, wrong: int, started: float) -> str:
    seconds = time.perf_counter() - started
    return f"{count:,} seeds, {wrong:,} went wrong, {seconds:.1f} s, {count / seconds:.1f} a second"


if __name__ == "__main__":
    sys.exit(main())
