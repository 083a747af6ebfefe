"""Several workers of one agent, some sick: the gate's state, and the goodput (P2, P16)."""

import pytest

from orchestration.decisions.recovery import Thresholds
from tests.simulation.goodput import Instances, SimStep

SEEDS = range(2)
USUAL = Thresholds(failure_threshold=5, backoff=1.0, backoff_cap=60.0, undo_threshold=20)


def run(per_second, seconds=40.0, until=120.0, **options):
    """Place steps evenly for a while; return the run, and its steps."""
    steps = [
        SimStep(number=number, placed=number / per_second)
        for number in range(int(per_second * seconds))
    ]
    instances = Instances(rate=options.pop("rate", lambda now: 0.0), thresholds=USUAL, **options)
    instances.place(steps)
    return instances.go(until), steps


def from_second(second, *numbers):
    return lambda number, now: number in numbers and now >= second


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("per_second", [3, 20, 200])
def test_breaker_stays_closed_with_one_sick_instance_of_three(per_second, seed):
    instances, steps = run(per_second, sick=from_second(10, 0), seed=seed)
    assert instances.states == []  # it was never anything but closed
    assert all(step.done_at for step in steps)
    assert max(step.failures for step in steps) <= 3
    slow = sorted(step.done_at - step.placed for step in steps)
    assert slow[int(len(slow) * 0.95)] < 0.5
    (first, number), *_ = instances.backs
    assert number == 0
    assert first - 10 < (2.5 if per_second >= 20 else 10)


@pytest.mark.parametrize("seed", SEEDS)
def test_goodput_falls_when_a_sick_instance_does_not_step_back(seed, monkeypatch):
    """The control: the same, with instances that never compare."""
    monkeypatch.setattr("orchestration.agents.outliers.FEW", 10**9)
    instances, steps = run(200, sick=from_second(10, 0), seed=seed, slots=15)
    slow = sorted(step.done_at - step.placed if step.done_at else 1e9 for step in steps)
    assert instances.states or slow[int(len(slow) * 0.95)] > 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_instance_returns_after_it_is_healed(seed):
    instances, steps = run(50, sick=lambda number, now: number == 0 and 10 <= now < 20, seed=seed)
    assert all(step.done_at for step in steps)
    assert instances.states == []
    assert instances.parts[0].back_since is None
    assert instances.done[0] > len(steps) / 10


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_no_instance_steps_back_when_all_fail_alike(share, seed):
    """Then it is the service, and the gate's matter."""
    outage = lambda now: share if 10 <= now < 30 else 0.0  # noqa: E731
    instances, _ = run(100, rate=outage, seed=seed)
    assert instances.backs == []


@pytest.mark.parametrize("seed", SEEDS)
def test_breaker_closes_after_an_outage_although_one_instance_stays_sick(seed):
    outage = lambda now: 1.0 if 10 <= now < 25 else 0.0  # noqa: E731
    instances, steps = run(50, rate=outage, sick=from_second(10, 0), seed=seed)
    assert all(step.done_at for step in steps)
    assert max(step.failures for step in steps) < USUAL.failure_threshold
    assert instances.states[-1][1] == "closed"
    assert instances.states[-1][0] < 55
    assert {number for _, number in instances.backs} == {0}


@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_instance_takes_all_when_two_of_three_are_sick(seed):
    instances, steps = run(50, sick=from_second(10, 0, 1), seed=seed)
    assert all(step.done_at for step in steps)
    assert {number for _, number in instances.backs} == {0, 1}


@pytest.mark.parametrize("seed", SEEDS)
def test_healthy_instance_takes_all_when_one_of_two_is_sick(seed):
    instances, steps = run(50, sick=from_second(10, 0), workers=2, seed=seed)
    assert all(step.done_at for step in steps)
    assert {number for _, number in instances.backs} == {0}
    assert [state for _, state in instances.states][-1:] in ([], ["closed"])


@pytest.mark.parametrize("seed", SEEDS)
def test_lone_instance_never_steps_back(seed):
    instances, _ = run(50, sick=from_second(10, 0), workers=1, seed=seed, until=60)
    assert instances.backs == []
    assert "open" in {state for _, state in instances.states}
