"""Run seeds, one after the other, on servers of this process."""

import argparse
import gc
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

# what a server for one run does not need, and what makes looks at locks cheaper
QUICK = (
    "synchronous_commit=off", "autovacuum=off", "wal_level=minimal", "max_wal_senders=0",
    "max_connections=40",
)  # fmt: skip


def part(options: argparse.Namespace, number: int, failed: Any, ended: Any) -> None:
    """Run each n-th seed, from the one with this number on; add up shared numbers."""
    from sasweb.stack import folders

    folder = Path(os.environ.get("TEST_DATA_DIR") or folders.data_dir())
    os.environ.setdefault("TEMPLATE_DIR", str(folder / "template"))
    os.environ["TEST_DATA_DIR"] = str(folder / f"interleave-{number}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    which = range(options.start + number, options.start + options.seeds, options.processes)
    for wrong in run(which, options):
        with failed.get_lock():
            failed.value += bool(wrong)
        with ended.get_lock():
            ended.value += 1


def run(seeds: Iterable[int], options: argparse.Namespace) -> Iterator[list[str]]:
    """Yield what is wrong after each seed, and print it."""
    import django

    django.setup()
    if not options.log:
        logging.disable(logging.CRITICAL)
    from django.db import connection

    from drill import template
    from drill.servers import FAST, servers
    from sasweb.stack import folders

    from . import guards, place, shrink
    from .run import Run

    template.copy_into(folders.data_dir())
    with servers(*FAST, *QUICK):
        connection.creation.create_test_db(verbosity=0, keepdb=True, serialize=False)
        with place.standing() as stage, guards.without(options.without):
            rows = place.Rows(stage.admin)
            gc.freeze()  # what is loaded stays: looks for garbage pass it over, and are rarer
            gc.set_threshold(50_000)

            def once(seed: int, replay: Sequence[int] | None = None, *, trace: bool = False) -> Run:
                place.set_time(stage)
                rows.reset()
                run = Run(stage, seed, replay, kind=options.kind, trace=trace)
                run.go()
                return run

            for seed in seeds:
                ended = once(seed, trace=options.trace)
                if ended.wrong and options.shrink:
                    ended = shrink.shrunk(ended, once)
                for line in ended.trace or ():
                    print(line)
                if ended.wrong:
                    lines = "\n    ".join(ended.wrong)
                    print(f"seed {seed} ({ended.kind}): {lines}", flush=True)
                yield ended.wrong
