"""Orders that need less, or another carrier."""

from uuid import uuid4

import pytest

from orchestration.api import request_undo
from orchestration.models import Alert, Incident
from orchestration.testing import outcomes
from orchestration.transitions.holds import hold

TO = {"order": "o-1", "to": "Bath"}


def undo(shop, order):
    request_undo(order.workflow, order.reference, actor="ann", reason="no", id=uuid4())
    shop.go()


@pytest.mark.parametrize(
    ("data", "done"),
    [
        ({"cents": 900, "digital": False}, ["pay", "ship"]),
        ({"cents": 900, "digital": True}, ["pay"]),
        ({"cents": 0, "digital": False}, ["ship"]),
        ({"cents": 0, "digital": True}, []),
    ],
)
def test_only_what_an_order_needs_is_done_and_undone(shop, data, done):
    order = shop.submit("mixed", {**TO, **data})
    shop.go()
    assert order.state == "processed"
    assert [call.step for call in order.calls()] == done
    assert {step for step, state in order.steps.items() if state == "skipped"} == {
        "pay", "ship"
    } - {*done}  # fmt: skip
    undo(shop, order)
    assert (order.state, order.undone) == ("undone", done[::-1])


def test_digital_order_does_not_wait_for_a_carrier_that_is_held(shop):
    hold(agent="carrier", actor="ann", reason="strike")
    digital = shop.submit("mixed", {**TO, "cents": 900, "digital": True})
    parcel = shop.submit("mixed", {**TO, "cents": 900, "digital": False})
    shop.wait(3_600)
    assert (digital.state, parcel.state) == ("processed", "processing")


def test_first_carrier_that_goes_there_is_the_only_one(shop):
    shop.script("carrier.book", outcomes.done(id="a1"))
    order = shop.submit("carried", {**TO, "cents": 900})
    shop.go()
    assert (order.state, order.steps["ship_b"]) == ("processed", "skipped")
    assert order.result("track") == {"parcel": "a1"}
    assert shop.calls("express.book") == []


@pytest.fixture
def refused(shop):
    shop.script("express.book", outcomes.done(id="b1"))

    def submit(*script):
        shop.script("carrier.book", *script)
        return shop.submit("carried", {**TO, "cents": 900})

    return submit


def test_refusal_leads_to_the_other_carrier_without_an_alert(shop, refused):
    order = refused(outcomes.rejected("not_served"))
    shop.go()
    assert (order.state, order.steps["ship_a"]) == ("processed", "skipped")
    assert order.result("track") == {"parcel": "b1"}
    assert not Alert.objects.exists()
    assert not Incident.objects.exists()
    undo(shop, order)
    assert (order.state, order.undone) == ("undone", ["ship_b", "pay"])
    assert shop.calls("carrier.cancel") == []


def test_other_refusal_is_an_error(shop, refused):
    order = refused(outcomes.rejected("too_heavy"))
    shop.go()
    assert (order.state, order.steps["ship_b"]) == ("error", "waiting")


def test_refusal_in_doubt_does_not_lead_to_a_second_parcel(shop, refused):
    """An earlier call may have booked one: the carrier does not keep its refusals by the key."""
    shop.policy("carrier", tries=1)
    order = refused(
        outcomes.in_doubt(happened=False), outcomes.rejected("not_served", stored=False)
    )
    shop.finish()
    assert (order.state, order.steps["ship_a"], order.steps["ship_b"]) == (
        "error", "error", "waiting",
    )  # fmt: skip
    assert order.step("ship_a").in_doubt
    assert shop.calls("express.book") == []


def test_refusal_that_is_kept_by_the_key_settles_the_doubt(shop, refused):
    shop.policy("carrier", tries=1)
    order = refused(outcomes.in_doubt(happened=False), outcomes.rejected("not_served"))
    shop.finish()
    assert (order.state, order.result("track")) == ("processed", {"parcel": "b1"})


def test_call_in_doubt_that_had_its_effect_is_not_refused(shop, refused):
    shop.policy("carrier", tries=1)
    order = refused(
        outcomes.Outcome(effect={"id": "a1"}, fault=outcomes.in_doubt().fault),
        outcomes.rejected("not_served"),
    )
    shop.finish()
    assert (order.state, order.result("track")) == ("processed", {"parcel": "a1"})
    assert shop.calls("express.book") == []


def test_outage_of_the_first_carrier_is_waited_out(shop, refused):
    order = refused(*[outcomes.transient()] * 4, outcomes.done(id="a1"))
    shop.finish()
    assert (order.state, order.result("track")) == ("processed", {"parcel": "a1"})
    assert shop.calls("express.book") == []
