"""python -m tests.interleave --seeds 10000 --start 0, or --seed 17 --trace."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import argparse
import logging
import sys
import time


def main() -> int:
    """Run seeds; say which went wrong, and how to see it again."""
    parser = argparse.ArgumentParser(prog="python -m tests.interleave", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--start", type=int, default=0, help="the first")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--trace", action="store_true", help="print what happens in it")
    parser.add_argument("--log", action="store_true", help="show what the product logs")
    options = parser.parse_args()
    return _here(options)


def _here(options: argparse.Namespace) -> int:
    import django

    django.setup()
    logging.getLogger().setLevel(logging.INFO if options.log else logging.CRITICAL)
    if not options.log:
        logging.disable(logging.CRITICAL)
    from django.db import connection

    from drill.servers import FAST, servers
    from tests.interleave import place
    from tests.interleave.run import Run

    with servers(*FAST, "synchronous_commit=off", "autovacuum=off"):
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        with place.standing() as stage:
            rows = place.Rows()
            failed = 0
            started = time.perf_counter()
            if options.seed is not None:
                options.start, options.seeds = options.seed, 1
            seeds = range(options.start, options.start + options.seeds)
            for seed in seeds:
                place.set_time(stage)
                rows.reset()
                run = Run(stage, seed, trace=options.trace)
                wrong = run.go()
                for line in run.trace or ():
                    print(line)
                if wrong:
                    failed += 1
                    print(f"seed {seed} ({run.kind}): " + "\n    ".join(wrong), flush=True)
            seconds = time.perf_counter() - started
            rate = len(seeds) / seconds
            print(f"{len(seeds)} seeds, {failed} went wrong, {seconds:.1f} s, {rate:.1f} a second")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
