"""Due times of schedules under faults: each comes to one end, and is submitted once."""

import pytest

from .schedules import run

SEEDS = 300


def test_each_due_time_comes_to_one_end():
    wrong = {seed: problem for seed in range(SEEDS) if (problem := run(seed))}
    assert not wrong


@pytest.mark.parametrize(
    ("guard", "problem"),
    [
        ("together", "what is noted is not what was submitted"),
        ("reference", "is submitted twice"),
        ("overlap", "is submitted while another goes on"),
        ("window", "is submitted too late"),
    ],
)
def test_run_fails_without_a_guard(guard, problem):
    problems = (run(seed, broken=frozenset({guard})) for seed in range(SEEDS))
    assert any(problem in wrong for wrong in problems if wrong)
