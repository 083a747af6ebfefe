"""The simulated gate: what one row can serve, by any number of schedulers."""

import pytest

from bench.gate import LATENCY, Gate
from orchestration.conf import BATCH_SIZE
from orchestration.console.statistics.sizing import MEASURED, Cost

NOTHING = Cost(task=0, step=0)


def test_small_window_is_the_bound():
    assert Gate(4, 10, before=NOTHING, held=NOTHING).run(4).rate == pytest.approx(
        10 / LATENCY, rel=0.05
    )


def test_gate_serves_no_more_than_its_lock_allows():
    held = Cost(task=10, step=0)  # for any number of replies
    for schedulers in (1, 8):
        result = Gate(schedulers, 100_000, before=NOTHING, held=held).run(4)
        assert result.batch == pytest.approx(BATCH_SIZE, rel=0.05)
        assert result.rate == pytest.approx(BATCH_SIZE / 0.010, rel=0.1)
    assert result.locked == pytest.approx(1, abs=0.01)
    assert result.waited == pytest.approx(70, rel=0.2)  # behind seven others


def test_schedulers_help_until_the_gate_is_locked_all_the_time():
    single, two, many = (Gate(count, 20_000).run(2) for count in (1, 2, 32))
    assert two.rate > 1.5 * single.rate
    assert many.locked > 0.9
    assert many.rate < 1.1 * 1000 * BATCH_SIZE / MEASURED.turn_held.of(BATCH_SIZE)
