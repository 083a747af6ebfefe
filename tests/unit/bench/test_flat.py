"""The verdict on what a task costs as there is more of everything."""

from bench.flat import verdict

COSTS = {"one of each": 1.0, "100,000 tasks": 1.1, "2 schedulers": 1.04}


def test_costs_are_multiples_of_the_first():
    assert verdict(COSTS, 0.9) == ([], "flat 100000_tasks=1.10 2_schedulers=1.04 held=0.90")


def test_each_missed_target_has_a_sentence():
    missed, _ = verdict(COSTS | {"20 agents": 1.2}, 0.84)
    assert missed == [
        "With 20 agents a task costs 1.20 times its CPU; the target is 1.1.",
        "Beside the transaction 0.84 of the tasks/s; the target is 0.85.",
    ]
