"""A process dies at the worst line, while orders are in flight: nothing is lost or done twice (P13)."""

from dataclasses import replace

import pytest

from drill.run import drill, prepare
from drill.stack import Stack
from drill.table import load

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
FEW = 60  # orders: enough to be at every step
# One of each actor: between its effect and what says so. All others are for `make drill`.
POINTS = (
    "submission-dies-in-transaction",
    "scheduler-dies-after-claim",
    "agent-dies-after-call",
    "leader-dies-in-transaction",
)
MODES = {mode.id: mode for mode in load()}


@pytest.fixture(scope="module")
def stack():
    running = Stack("crash-points").start()
    try:
        prepare(running)
        yield running
    finally:
        running.stop()


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_there_loses_nothing(stack, point):
    mode = MODES[point]
    assert "point" in mode.given
    result = drill(stack, [replace(mode, orders=FEW)])
    assert result.verdict.good, result.verdict.troubles[:5]
    assert result.orders >= FEW
