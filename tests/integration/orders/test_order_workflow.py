"""An order from its checkout to its end: the partners' answers are scripted, and time passes."""

import pytest

from orchestration.testing.outcomes import done, in_doubt, rejected, silent, transient
from orders.agents.partner import MEND_WITHIN
from orders.lifecycle import tracking
from orders.lifecycle.message import WORKFLOW
from orders.models import Order
from tests.support.shop import buy, order_verdict

pytestmark = pytest.mark.usefixtures("shelf")

STEPS = ["reserve_stock", "authorize_payment", "create_shipment", "capture_payment"]


@pytest.fixture
def order(run, client):
    """The view of an order of two of sku-0 that was posted."""
    return run.task(WORKFLOW, str(buy(client, sku_0=2)))


def status(order):
    return Order.objects.get(id=order.reference).status


def test_steps_of_an_order_use_the_results_of_earlier_ones(run, client, order):
    run.script("payment.authorize", done(id="pi_1", status="requires_capture"))
    run.script("inventory.reserve", done(id="rsv_1"))
    run.script("shipping.book", done(id="shp_1", tracking="TRK1"))
    run.go()
    assert order.state == "processed"
    sent = {call.step: call.payload for call in order.calls()}
    assert sorted(sent) == sorted([*STEPS, "send_confirmation"])
    assert sent["create_shipment"]["reservation"] == "rsv_1"
    assert sent["capture_payment"] == {"payment": "pi_1", "amount": 2000}
    assert sent["send_confirmation"]["parcel"] == "TRK1"
    assert order_verdict(client, order.reference) == tracking.CONFIRMED


@pytest.mark.parametrize("failure", [in_doubt(), in_doubt(happened=True), silent(), transient()])
def test_capture_is_never_repeated_under_another_key(run, order, failure):
    run.policy("payment", tries=1)
    run.script("payment.capture", failure, done(id="pi_1", status="succeeded"))
    run.finish()
    assert order.state == "processed"
    first, second = run.calls("payment.capture")
    assert first.key == second.key


def test_declined_card_that_is_not_replaced_in_time_undoes_the_order(run, order):
    run.script("payment.authorize", rejected("generic_decline", "no"))
    run.wait(MEND_WITHIN - 1)
    assert (order.state, status(order)) == ("error", "failed")
    run.wait(1)
    assert (order.state, order.undone) == ("undone", ["reserve_stock"])
    assert len(run.calls("payment.authorize")) == 1
    assert status(order) == "undone"


def test_cancelled_order_is_undone_in_the_reverse_order(run, client, order):
    run.script("notification.send", transient(), reference=order.reference)  # not sent yet
    run.go()
    assert order.steps["capture_payment"] == "processed"
    assert client.post(f"/orders/{order.reference}/cancel/").status_code == 303
    run.go()
    assert order.state == "undone"
    assert order.undone[:2] == ["capture_payment", "create_shipment"]
    assert sorted(order.undone) == sorted(STEPS)
    (reserved,) = run.calls("inventory.reserve")
    (released,) = run.calls("inventory.release")
    assert released.payload == {"key": reserved.key}
