"""A process crashes at chosen lines with orders in flight: none is lost or doubled (P13)."""

from dataclasses import replace

import pytest

from drill.modes_table import load
from drill.run import drill, prepare
from drill.stack import Stack
from drill.verdict import audited

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
FEW = 60  # orders: enough for every step
# one for each actor, between an effect and its record; `make drill` has all
POINTS = (
    "submission-dies-in-transaction",
    "scheduler-dies-after-claim",
    "agent-dies-after-call",
    "leader-dies-in-transaction",
)
MODES = {mode.id: mode for mode in load()}


@pytest.fixture(scope="module")
def stack():
    with audited(Stack("crash-points")) as running:
        prepare(running)
        yield running


@pytest.mark.parametrize("point", POINTS)
def test_crash_at_each_point_loses_nothing(stack, point):
    mode = MODES[point]
    assert "point" in mode.options
    result = drill(stack, [replace(mode, orders=FEW)])
    assert result.verdict.good, result.verdict.troubles[:5]
    assert result.orders >= FEW
