"""`python -m bench.waits`: plain tasks beside payments that wait for their customers.

Tasks of three calls are submitted at a steady rate, and their latency is measured: alone, beside 12 tasks
whose step a service has accepted, and while the service is to be asked about 10,000 of them at once.
The last line is for scripts: `waits p95_12=… p95_looks=… looks_per_s=…`. The first two are p95 of the
plain tasks divided by that of plain tasks alone, measured before and after.
"""

import argparse
import sys
import time
from statistics import mean

from bench.console import conclude, interruptible, progress, table
from bench.measure import percentile
from bench.session import Session, session
from bench.systems import ENGINE, PREPARE, PYTHON, engine
from bench.testbed import Testbed, testbed
from drill.waiting import wait_for
from sasweb.stack import folders

FEW, RATIO = 12, 1.2  # payments; the limit of p95 beside them, as a multiple of p95 alone
PATIENCE = 600.0  # seconds
DUE = "UPDATE orchestration_wait SET look_at = clock_timestamp()"
ASKED = "SELECT count(*) FROM orchestration_wait WHERE looks > 0"
HISTORY = "SELECT count(*) FROM orchestration_event JOIN orchestration_wait USING (step_id)"


def main() -> int:
    """Measure, print; return 1 past a limit."""
    parser = argparse.ArgumentParser(prog="python -m bench.waits", description=__doc__)
    parser.add_argument("--looks", type=int, default=10_000, help="to be made at once")
    parser.add_argument("--rate", type=float, default=50.0, help="plain tasks a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    return interruptible(measure, parser.parse_args())


def measure(options: argparse.Namespace) -> int:
    """Run the engine; measure plain tasks alone and beside what is awaited."""
    system = engine()
    with testbed(folders.data_dir() / "waits") as bed:
        bed.run(PREPARE[ENGINE].command, PREPARE[ENGINE].environment)
        with session(bed, system) as running:
            running.backlog(system.warm_up)
            bed.checkpoint()
            before = _plain(running, options)
            _accept(bed, FEW)
            few = _plain(running, options)
            _accept(bed, options.looks - FEW)
            bed.checkpoint()
            bed.sql(DUE)
            began = time.monotonic()
            looks = _plain(running, options)
            asked = bed.count(ASKED)
            rate = asked / (time.monotonic() - began)
            progress(f"{asked:,} of {options.looks:,} were asked meanwhile")
            wait_for(lambda: bed.count(ASKED) == options.looks, "all are asked", PATIENCE)
            after = _plain(running, options)
            assert not bed.count(HISTORY), "looks have written history"
    return _conclude({"alone": before, f"beside {FEW} that wait": few,
                      "while many are asked": looks, "alone, again": after}, rate)  # fmt: skip


def _conclude(latencies: dict[str, list[float]], rate: float) -> int:
    rows = [
        [name, *(f"{percentile(values, share):.0f}" for share in (0.5, 0.95, 0.99))]
        for name, values in latencies.items()
    ]
    print(table(["three calls, ms", "p50", "p95", "p99"], rows))
    before, few, looks, after = (percentile(values, 0.95) for values in latencies.values())
    alone = mean((before, after))
    ratios = {"p95_12": few / alone, "p95_looks": looks / alone}
    missed = [
        f"{name} is {ratio:.2f}; the target is at most {RATIO:g}."
        for name, ratio in ratios.items()
        if ratio > RATIO
    ]
    words = [f"{name}={ratio:.2f}" for name, ratio in ratios.items()]
    return conclude(missed, f"waits {' '.join(words)} looks_per_s={rate:.0f}")


def _accept(bed: Testbed, tasks: int) -> None:
    (client,) = engine().clients
    command = [PYTHON, "-m", "bench.engine.waits", str(tasks)]
    bed.run(command, client.environment, PATIENCE)


def _plain(running: Session, options: argparse.Namespace) -> list[float]:
    return running.paced(round(options.rate * options.seconds), options.rate)


if __name__ == "__main__":
    sys.exit(main())
