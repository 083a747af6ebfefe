"""`python -m bench --against COMMIT`: the CPU of a task here, beside that of another commit.

The other commit is checked out with an environment of its own, and measured by its own benchmark.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from bench.console import conclude, progress, table
from bench.measure import own_cost
from bench.systems import ENGINE, PYTHON
from sasweb.stack.folders import PROJECT

FOLDER = PROJECT / ".bench" / "against"
ROUNDS = 3

Costs = Mapping[str, float]


def compare(commit: str, at_most: float) -> int:
    """Measure both commits side by side; return 1 if a task costs more than `at_most` of the other's CPU.

    The speed of a shared machine varies within seconds: only what runs at the same time can be compared.
    """
    trees = {"there": check_out(commit), "here": PROJECT}
    costs: dict[str, list[Costs]] = {name: [] for name in trees}
    with ThreadPoolExecutor(len(trees)) as side_by_side:
        for number in range(1, ROUNDS + 1):
            for name, cost in zip(
                trees, side_by_side.map(measured, trees, trees.values()), strict=True
            ):
                costs[name].append(cost)
                progress(f"round {number}, {name}: {own_cost(cost):.2f} ms")
    share = ratio(costs["here"], costs["there"])
    sys.stdout.write(f"{report(costs, commit)}\n\n")
    missed = [f"A task costs {share:.2f} of its CPU at {commit}; the target is {at_most:g}."]
    return conclude(missed if share > at_most else [], f"ratio cpu={share:.2f}")


def check_out(commit: str) -> Path:
    """Return a folder with the commit's files, and what it requires installed."""
    revision = _git("rev-parse", "--verify", f"{commit}^{{commit}}").strip()
    tree = FOLDER / revision[:12]
    if not tree.exists():
        _git("worktree", "prune")
        _git("worktree", "add", "--detach", str(tree), revision)
    progress(f"installing what {commit} requires")
    subprocess.run(["make", "-s", ".venv/.run"], cwd=tree, check=True, stdout=sys.stderr)
    return tree


def measured(name: str, tree: Path) -> Costs:
    """Return ms of CPU per task and kind of process, by the quick benchmark of a commit."""
    python = tree / ".venv" / "bin" / "python" if tree != PROJECT else PYTHON
    environment = {**os.environ, "DATA_DIR": str(FOLDER / "data" / name)}
    done = subprocess.run(
        [str(python), "-m", "bench", "--quick", "--only", ENGINE, "--json"],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.strip():  # a missed target is also an error
        raise RuntimeError(f"the benchmark in {tree} failed:\n{done.stderr[-2000:]}")
    costs: Costs = json.loads(done.stdout)["systems"][ENGINE]["cpu_ms_per_task"]
    return costs


def ratio(here: Sequence[Costs], there: Sequence[Costs]) -> float:
    """Return the median of the pairs' ratios."""
    pairs = zip(here, there, strict=True)
    return median(own_cost(run) / own_cost(base) for run, base in pairs)


def report(costs: Mapping[str, Sequence[Costs]], commit: str) -> str:
    """Return the medians as a table."""
    kinds = list(costs["here"][0])
    names = {"there": commit, "here": "here"}
    rows = []
    for name, label in names.items():
        middle = [median(run.get(kind, 0.0) for run in costs[name]) for kind in kinds]
        own = median(own_cost(run) for run in costs[name])
        rows.append([label, *(f"{ms:.2f}" for ms in middle), f"{own:.2f}"])
    return table(["CPU per task in ms", *kinds, "without client and sandbox"], rows)


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=PROJECT, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"git {arguments[-1]}: {done.stderr.strip()}")
    return done.stdout
