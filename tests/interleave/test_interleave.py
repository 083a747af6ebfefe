import os
import re
import subprocess
import sys

import pytest

from .shrink import plainer

SEEDS = 100  # `make interleave` runs any number
# a seed that goes wrong without a guard, and how
WITHOUT = [
    ("doubt", 447, "stands on an undone task"),
    ("pass", 275, "skipped, and it was done"),
    ("attempt", 248, "undone by a request about an earlier attempt"),
    ("removed", 30, "a task was made again after its removal"),
]

pytestmark = pytest.mark.timeout(600)


def interleave(*arguments):
    """Run seeds in a process of their own; return its output."""
    command = [sys.executable, "-m", "tests.interleave", "--processes", "1", *arguments]
    environment = {**os.environ, "TEST_DATA_DIR": os.environ["DATA_DIR"]}
    del environment["DATA_DIR"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert all(line.endswith("a second") for line in ended.stderr.splitlines()), ended.stderr
    return ended.stdout, ended.returncode


def test_no_interleaving_goes_wrong():
    output, code = interleave("--seeds", str(SEEDS))
    assert output.startswith(f"{SEEDS} seeds, 0 went wrong"), output
    assert code == 0


def test_no_change_of_an_input_goes_wrong():
    """Each step is sent what it has in the state store, by the input that its task has then."""
    amended = "--kind", "amended", "--seeds"
    output, code = interleave(*amended, "30")
    assert output.startswith("30 seeds, 0 went wrong"), output
    assert code == 0
    output, code = interleave(*amended, "7", "--without", "used")
    assert "sent 'Ada', and the input of 5-1 has 'Eve" in output
    assert code == 1


def test_no_interleaving_of_children_goes_wrong():
    output, code = interleave("--seeds", str(SEEDS // 2), "--kind", "children")
    assert output.startswith(f"{SEEDS // 2} seeds, 0 went wrong"), output
    assert code == 0


def test_no_undo_of_a_part_goes_wrong():
    part = "--kind", "undone in part", "--seeds"
    output, code = interleave(*part, "30")
    assert output.startswith("30 seeds, 0 went wrong"), output
    assert code == 0
    output, code = interleave(*part, "10", "--without", "part")
    assert "was sent out before" in output
    assert code == 1


@pytest.mark.parametrize(("guard", "seed", "problem"), WITHOUT)
def test_run_without_a_guard_goes_wrong(guard, seed, problem):
    output, code = interleave("--without", guard, "--seed", str(seed))
    assert f"seed {seed} (" in output
    assert problem in output
    assert code == 1


def test_run_that_goes_wrong_shrinks():
    guard, seed, problem = WITHOUT[1]  # whose runs are the shortest
    output, code = interleave("--without", guard, "--seed", str(seed), "--shrink")
    assert problem in output
    assert code == 1
    events = [line for line in output.splitlines() if re.match(r" *\d+\.\d{3} ", line)]
    assert 0 < len(events) < 40


def test_plainer_choices_are_found():
    choices = [3, 0, 1, 7, 2, 0, 5, 1, 1, 4]

    def fails(tried):
        return any(number >= 5 for number in tried)

    assert plainer(choices, fails) == [5]


def test_choices_that_never_fail_again_stay():
    assert plainer([1, 2], lambda _: False) == [1, 2]
