"""Processes die while webhooks come, children are made, and a schedule catches up."""

from dataclasses import replace

import pytest

from drill.flows.stack import FlowsStack
from drill.modes_table import load
from drill.run import drill, prepare
from drill.verdict import audited

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
FEW = 20  # orders of the shop beside
# one for each that `drill.flows` is for; `make drill` has all
MODES = {mode.id: mode for mode in load()}
CHOSEN = (
    "webhooks-cut-after-commit",
    "scheduler-dies-making-children",
    "leader-dies-in-catch-up",
)


@pytest.fixture(scope="module")
def stack():
    with audited(FlowsStack("flow-drills")) as running:
        prepare(running)
        yield running


@pytest.mark.parametrize("chosen", CHOSEN)
def test_nothing_of_a_flow_is_lost_or_doubled(stack, chosen):
    mode = MODES[chosen]
    fewer = {"times": 1} if "point" in mode.options else {"each": 2}
    result = drill(stack, [replace(mode, orders=FEW, options={**mode.options, **fewer})])
    assert result.verdict.good, result.verdict.troubles[:5]
