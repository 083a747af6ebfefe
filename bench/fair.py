"""`python -m bench.fair`: ten tasks of one application behind 50,000 of another.

The last line is for scripts: `fair ten=…s bulk=…`, where `bulk` is the bulk's rate while the ten are
processed, divided by its rate before.
"""

import argparse
import json
import sys

from bench.session import session
from bench.systems import ENGINE, PREPARE, PYTHON, System, engine
from bench.testbed import Testbed, testbed
from sasweb.stack import folders

TEN = 3.0  # seconds
PATIENCE = 900.0  # seconds


def main() -> int:
    """Run it; return 1 if a target was missed."""
    options = parse_options()
    system = engine()
    with testbed(folders.data_dir() / "fair") as running:
        part = PREPARE[ENGINE]
        running.run(part.command, part.environment)
        with session(running, system) as busy:
            busy.backlog(system.warm_up)
            running.checkpoint()
            figures = ask(running, system, options.tasks)
    ten = max(figures["inbox"], figures["agent"])
    bulk = figures["after"] / figures["before"]
    sys.stdout.write(
        f"{options.tasks} tasks of one key submitted in {figures['posted']:.1f} s, "
        f"all accepted {figures['taken']:.1f} s after the first, {figures['left']:.0f} left at the end\n"
        f"ten of another key: {figures['inbox']:.2f} s behind them in the inbox, "
        f"{figures['agent']:.2f} s behind them at the agent\n"
        f"the bulk: {figures['before']:.0f} tasks/s before, {figures['after']:.0f} meanwhile\n"
        f"fair ten={ten:.2f}s bulk={bulk:.2f}\n"
    )
    return int(ten > TEN)


def ask(running: Testbed, system: System, tasks: int) -> dict[str, float]:
    """Measure inside the engine, in a process of its own."""
    (client,) = system.clients
    command = [PYTHON, "-m", "bench.engine.fair", str(tasks)]
    output = running.run(command, client.environment, PATIENCE)
    answer: dict[str, float] = json.loads(output.splitlines()[-1])
    return answer


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.fair", description=__doc__)
    parser.add_argument("--tasks", type=int, default=50_000, help="number in the bulk")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
