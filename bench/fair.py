"""`python -m bench.fair`: ten tasks of one application behind 50,000 of another.

Also what a claim costs by turn, beside one by age: both in one run, on the same rows. The last line is
for scripts: `fair ten=…s bulk=… claim=…`, where `bulk` is the bulk's rate while the ten are done over
its rate before.
"""

import argparse
import json
import subprocess
import sys

from bench.session import session
from bench.stack import Stack, stack
from bench.systems import ENGINE, PREPARE, PYTHON, System, engine
from sasweb.stack import folders

TEN, CLAIM = 3.0, 1.05  # seconds; the claim's cost with keys over that without
PATIENCE = 900.0  # seconds


def main() -> int:
    """Run it; return 1 if a target was missed."""
    options = parse_options()
    system = engine()
    with stack(folders.data_dir() / "fair") as running:
        part = PREPARE[ENGINE]
        running.run(part.command, {**running.environment, **part.environment})
        costs = ask(running, system, "claim", options.tasks)
        with session(running, system) as busy:
            busy.backlog(system.warm_up)
            running.checkpoint()
            found = ask(running, system, "load", options.tasks)
    ten = max(found["inbox"], found["agent"])
    bulk, claim = found["after"] / found["before"], costs["ratio"]
    sys.stdout.write(
        f"{options.tasks} tasks of one key posted in {found['posted']:.1f} s, "
        f"all taken {found['taken']:.1f} s after the first, {found['left']:.0f} left at the end\n"
        f"ten of another key: {found['inbox']:.2f} s behind them in the inbox, "
        f"{found['agent']:.2f} s behind them at the agent\n"
        f"the bulk: {found['before']:.0f} tasks/s before, {found['after']:.0f} meanwhile\n"
        f"a claim of 200: {costs['with']:.2f} ms by turn, {costs['without']:.2f} ms by age\n"
        f"fair ten={ten:.2f}s bulk={bulk:.2f} claim={claim:.3f}\n"
    )
    return int(ten > TEN or claim > CLAIM)


def ask(running: Stack, system: System, what: str, tasks: int) -> dict[str, float]:
    """Have the engine's side measure something, in a process of its own."""
    (client,) = system.clients
    done = subprocess.run(
        [PYTHON, "-m", "bench.engine.fair", what, str(tasks)],
        cwd=folders.PROJECT,
        env={**running.environment, **client.environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{what} failed:\n{done.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.fair", description=__doc__)
    parser.add_argument("--tasks", type=int, default=50_000, help="in the bulk")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
