import os
import subprocess
import sys
from collections import Counter

import pytest

from . import __main__ as command
from .child_shapes import STRIKES
from .run import LEAST_FAULTS, Run, run
from .services import Broken
from .shapes import FAULTS
from .world import World

SEEDS = 2000
BLOCK = 250
OF_CHILDREN = frozenset({"whole", "kept", "all", "below", "up", "rest", "look"})


@pytest.mark.parametrize("start", range(0, SEEDS, BLOCK))
def test_invariants_hold_after_each_event_and_every_task_ends_well(start):
    wrong = {seed: problem for seed in range(start, start + BLOCK) if (problem := run(seed))}
    assert not wrong, "see one: python -m tests.simulation --trace --seed " + str(min(wrong))


def test_runs_differ_and_all_kinds_of_faults_occur():
    struck = Counter()
    states = set()
    for seed in range(150):
        simulation = Run(seed)
        assert len(simulation.faults) >= LEAST_FAULTS
        world = simulation.go()
        struck += world.applied
        poisoned = {
            task for task, _ in world.poison
        }  # may wait for a service that answers no other
        awaits = simulation.schedulers.children.awaited
        tasks = [task for task in world.store.tasks.values() if not awaits(task)]
        states |= {str(task.state) for task in tasks if task.id not in poisoned}
    assert struck.keys() == {*FAULTS, *STRIKES, "amend"}
    assert states == {"processed", "undone", "error"}


@pytest.mark.parametrize("broken", [frozenset(), frozenset({"key"})])
def test_seed_replays_exactly(broken):
    for seed in range(20):
        traces = []
        for _ in range(2):
            simulation = Run(seed, broken=broken, trace=True)
            try:
                simulation.go()
            except Broken as error:
                simulation.world.log("{}", error)
            traces.append(simulation.world.trace)
        assert traces[0] == traces[1]


@pytest.mark.parametrize(
    ("guards", "problem"),
    [
        ("fence", "is accepted late"),
        ("key", "is done twice"),
        ("lock", "two probes at once"),
        ("settle", "is undone, and"),
        ("memory", "is done twice"),
        ("once late", "is undone, and"),
        ("doubt", "is done twice"),
        ("doubt", "is undone, and"),
        ("late", "is undone, and"),
        ("skip", "waits for nothing"),
        ("hold", "is held, and is undone"),
        ("own", "failures of its own, and goes on"),
        ("own", "does not come to rest"),
        ("turns", "does not come to rest"),
        ("repeat", "is undone, and"),
        ("pass", "which there is not"),
        ("of", "is done twice"),
        ("accepted", "is done twice"),
        ("time", "is done before its time"),
        ("whole", "is made twice"),
        ("kept", "has two children"),
        ("all", "ends, and its child"),
        ("below", "is undone, and its child"),
        ("up", "is undone, and its child"),
        ("up", "is undone before"),
        ("rest", "has enough, and"),
        ("look", "waits for children that have ended"),
        ("taken", "has a former value"),
        ("taken", "has children of former values"),
        ("rebuilt", "has a former value"),
    ],
)
def test_run_fails_without_a_guard(guards, problem):
    broken = frozenset(guards.split())
    seeds = (seed for seed in range(SEEDS) if not broken & OF_CHILDREN or World(seed).part)
    problems = (run(seed, broken=broken) for seed in seeds)
    assert any(problem in wrong for wrong in problems if wrong)


def test_command_runs_by_itself():
    command_line = [sys.executable, "-m", "tests.simulation", "--seed", "1"]
    made = {name: value for name, value in os.environ.items() if "DJANGO" not in name}
    ended = subprocess.run(command_line, env=made, capture_output=True, text=True, check=False)
    assert ended.stdout.endswith("seed 1: good\n"), ended.stderr


def test_command_prints_a_run_and_the_failed_seeds(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["simulation", "--seed", "1", "--trace"])
    assert command.main() == 0
    output = capsys.readouterr().out
    assert "claim" in output
    assert output.endswith("seed 1: good\n")
    monkeypatch.setattr("sys.argv", ["simulation", "--seeds", "5", "--without", "key"])
    assert command.main() == 1
    output = capsys.readouterr().out
    assert "seed 1: " in output or "seed 0: " in output
