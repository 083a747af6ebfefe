"""`python -m bench.flows`: orders that wait for a bank, or have parcels, on this engine and on DBOS.

Of `bank`, a task is a call, a wait for what the bank says of it, and another call. The bank reports right
after the order, so some reports come before they are awaited. Of `parcels`, it has three children of a call
each, and a call after these. The last line is for scripts: `flows bank=… parcels=…`, this engine's tasks/s
divided by those of DBOS.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from bench.console import conclude, interruptible, progress, table
from bench.measure import middle, own_cost, percentile, size_of_run
from bench.peers.install import install
from bench.runs import Findings
from bench.session import session
from bench.systems import DBOS, ENGINE, PREPARE, System, dbos_queue, engine
from bench.testbed import Testbed, testbed
from sasweb.stack import folders

FLOWS = {"bank": 2, "parcels": 4}  # and the calls of a task
HEAD = ["tasks/s", "CPU per task, ms", "one at a time, p50 ms", "p95 ms"]


def main() -> int:
    """Run it; print the figures of both."""
    parser = argparse.ArgumentParser(prog="python -m bench.flows", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of a backlog")
    parser.add_argument("--idle", type=int, default=30, help="tasks one at a time")
    return interruptible(measure, parser.parse_args())


def measure(options: argparse.Namespace) -> int:
    """Measure each flow on both systems by turns."""
    install()
    ratios = {}
    with testbed(folders.data_dir() / "flows") as bed:
        for family in (ENGINE, DBOS):
            bed.run(PREPARE[family].command, PREPARE[family].environment)
        for flow, calls in FLOWS.items():
            pair = [of_flow(system, flow, calls) for system in (engine(flows=True), dbos_queue(2))]
            figures = {system.label: Findings(system) for system in pair}
            for number in range(1, options.rounds + 1):
                for system in pair:
                    _round(bed, system, options, figures[system.label])
                    rate = figures[system.label].rates[-1]
                    progress(f"{flow}, round {number}: {system.label}: {rate:.0f} tasks/s")
            print(table([f"flow: {flow}", *HEAD], [_row(*item) for item in figures.items()]))
            own, peer = (findings.rate for findings in figures.values())
            ratios[flow] = own / peer
    words = [f"{flow}={ratio:.2f}" for flow, ratio in ratios.items()]
    return conclude([], f"flows {' '.join(words)}")


def of_flow(system: System, flow: str, calls: int) -> System:
    """Return a system whose client loads it with a flow."""
    clients = [replace(part, command=[*part.command, flow]) for part in system.clients]
    return replace(system, clients=clients, calls=calls)


def _round(bed: Testbed, system: System, options: argparse.Namespace, figures: Findings) -> None:
    """Measure a backlog, and tasks one at a time."""
    with session(bed, system) as running:
        warm, _ = running.backlog(system.warm_up)
        bed.checkpoint()
        rate, cpu = running.backlog(size_of_run(warm, options.seconds))
        figures.rates.append(rate)
        figures.cpu.append(cpu)
        figures.idle += running.idle(options.idle)


def _row(label: str, figures: Findings) -> Sequence[str]:
    cost = own_cost(middle(figures.cpu))
    p50, p95 = (percentile(figures.idle, share) for share in (0.5, 0.95))
    return [label, f"{figures.rate:.0f}", f"{cost:.2f}", f"{p50:.0f}", f"{p95:.0f}"]


if __name__ == "__main__":
    sys.exit(main())
