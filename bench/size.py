"""`python -m bench.size`: what a task and a step cost in processor time, rows, bytes and WAL.

The figures of `orchestration/console/statistics/sizing.py`, by which `manage.py size` calculates: from
backlogs of tasks of one step and of five, on servers of its own, with one process of each kind.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from statistics import median

from bench.console import conclude, interruptible, progress, table
from bench.session import session
from bench.systems import ENGINE, PREPARE, PYTHON, engine
from bench.testbed import Testbed, testbed
from sasweb.stack import folders
from sasweb.stack.embedded import DATABASE

FEW, MANY = 1, 5  # steps of a task
RUNS = 3
KINDS = ("submission", "scheduler", "agent", "postgres", "redis")
WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
BYTES = """
SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
WHERE relkind = 'r' AND relname IN ('orchestration_task', 'orchestration_step', 'orchestration_attempt',
    'orchestration_event')
"""
ROWS = """
SELECT (SELECT count(*) FROM orchestration_task) + (SELECT count(*) FROM orchestration_step)
    + (SELECT count(*) FROM orchestration_attempt) + (SELECT count(*) FROM orchestration_event)
"""
TURNS = [PYTHON, "-m", "bench.engine.turns"]


def main() -> int:
    """Run it."""
    return interruptible(measure, parse_options())


def measure(options: argparse.Namespace) -> int:
    """Measure on servers of its own, and print the figures."""
    with testbed(folders.data_dir() / "size") as bed:
        few, many = (_costs(bed, steps, options.tasks) for steps in (FEW, MANY))
        turns = _turns(bed)
    rows = []
    for name in few:
        step = (many[name] - few[name]) / (MANY - FEW)
        rows.append([name, f"{few[name] - FEW * step:.3g}", f"{step:.3g}"])
    sys.stdout.write(f"{table(['of a task', 'itself', 'each step'], rows)}\n\n")
    rows = [
        [size, f"{before * 1e3:.2f}", f"{held * 1e3:.2f}"] for size, (before, held) in turns.items()
    ]
    sys.stdout.write(f"{table(['replies', 'ms before the gate', 'ms in the gate'], rows)}\n")
    return conclude([])


def _costs(bed: Testbed, steps: int, tasks: int) -> dict[str, float]:
    """Return the cost of a task with this number of steps: ms of CPU, rows, bytes."""
    system = engine(calls=steps)
    prepare = PREPARE[ENGINE]
    bed.run(prepare.command, {**prepare.environment, "STEPS": str(steps)})
    with session(bed, system) as running:
        running.backlog(system.warm_up)
        running.backlog(system.warm_up)
        bed.checkpoint()
        before = _stored(bed)
        runs = [running.backlog(tasks) for _ in range(RUNS)]
        stored = {name: (_stored(bed)[name] - was) / (tasks * RUNS) for name, was in before.items()}
    rate = median(rate for rate, _ in runs)
    progress(f"{steps} steps: {rate:.0f} tasks/s")
    return {f"ms of {kind}": median(cpu[kind] for _, cpu in runs) for kind in KINDS} | stored


def _stored(bed: Testbed) -> Mapping[str, float]:
    queries = {"rows": ROWS, "bytes": BYTES, "bytes of WAL": WAL}
    return {name: float(bed.execute(query, DATABASE)[0][0]) for name, query in queries.items()}


def _turns(bed: Testbed) -> dict[str, tuple[float, float]]:
    prepare = PREPARE[ENGINE]
    steps = {"STEPS": "20"}  # so that each turn of the measurement is followed by another
    bed.run(prepare.command, {**prepare.environment, **steps})
    turns: dict[str, tuple[float, float]] = json.loads(
        bed.run(TURNS, {**prepare.environment, **steps})
    )
    return turns


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.size", description=__doc__)
    parser.add_argument("--tasks", type=int, default=5_000, help="of each of the runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
