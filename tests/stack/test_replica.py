"""The state store is replicated (P15): its server is lost, and a standby takes over."""

import pytest

from drill.ha.stacks import Replicated
from drill.run import Run, prepare
from drill.verdict import audited, verdict

pytestmark = [pytest.mark.stack, pytest.mark.timeout(240)]
ORDERS = 80


@pytest.fixture
def stack():
    with audited(Replicated("replica")) as running:
        prepare(running)
        yield running


def test_standby_takes_over_and_accepted_orders_end_once(stack):
    run = Run(stack)
    run.place(ORDERS, flying=ORDERS)
    assert run.open() > 0
    stack.pair.primary.die()
    stack.pair.promote()  # until then it is read-only
    run.quiet()
    result = verdict(stack, run.orders)
    assert result.good, result.troubles[:5]
    more = run.place(10)  # on the new primary
    run.quiet()
    assert verdict(stack, more).good
