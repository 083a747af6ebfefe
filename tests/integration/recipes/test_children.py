"""Orders that have other tasks do a part."""

from uuid import uuid4

import pytest

from orchestration.api import request_undo
from orchestration.models import Alert
from orchestration.testing import outcomes

DATA = {"order": "o-1", "cents": 900, "to": "Bath"}
HOUSES = [{"house": "north"}, {"house": "south"}, {"house": "east"}]


def undo(shop, task):
    request_undo(task.workflow, task.reference, actor="ann", reason="no", id=uuid4())
    shop.go()


@pytest.fixture
def submit(shop):
    """Submit an order of parcels; return it, and a function that returns one of them."""

    shop.script("carrier.book", outcomes.done(id="p"))

    def begin(houses=HOUSES):
        order = shop.submit("parcels", {**DATA, "parcels": houses}, reference="o-1")
        shop.go()
        return order, lambda number: shop.task("parcel", f"o-1/parcels/{number}")

    return begin


def test_order_ends_with_all_parcels_and_what_they_are_called(submit):
    order, _ = submit()
    assert (order.state, order.result("track")) == ("processed", {"parcels": [{"id": "p"}] * 3})


def test_order_without_parcels_goes_on_at_once(submit):
    order, _ = submit([])
    assert (order.state, order.result("track")) == ("processed", {"parcels": []})


def test_closed_warehouse_stops_its_parcel_alone_and_an_undo_takes_all_back(shop, submit):
    closed = outcomes.rejected("closed")
    shop.script("carrier.book", closed, reference="o-1/parcels/1")
    order, parcel = submit()
    assert [parcel(number).state for number in range(3)] == ["processed", "error", "processed"]
    assert (order.state, order.steps["parcels"]) == ("processing", "awaiting")
    undo(shop, order)
    assert order.state == "undone"
    assert len(shop.calls("carrier.cancel")) == 2  # the third was never booked
    assert shop.calls("bank.refund")[0].at >= shop.calls("carrier.cancel")[-1].at


def test_parcel_in_doubt_is_settled_before_the_order_is_undone(shop, submit):
    shop.policy("carrier", tries=1)
    lost = outcomes.in_doubt(happened=True)
    shop.script("carrier.book", lost, outcomes.done(), reference="o-1/parcels/1")
    order, parcel = submit()
    undo(shop, order)
    shop.finish()
    assert (order.state, parcel(1).state) == ("undone", "undone")
    assert len(shop.calls("carrier.cancel")) == 3


def test_one_parcel_is_cancelled_and_the_others_stay(shop, submit):
    shop.script("carrier.book", outcomes.later(), reference="o-1/parcels/2")
    order, parcel = submit()
    undo(shop, parcel(2))
    assert order.state == "processed"
    assert [value is None for value in order.result("track")["parcels"]] == [False, False, True]
    assert [parcel(number).state for number in range(2)] == ["processed"] * 2
    undo(shop, order)
    assert (order.state, len(shop.calls("carrier.cancel"))) == ("undone", 3)
    assert {call.reference for call in shop.calls("carrier.cancel")} == {
        f"o-1/parcels/{number}" for number in range(3)
    }


def test_parcels_that_wait_are_no_trouble_of_the_order(shop, submit):
    shop.script("carrier.book", outcomes.later())
    order, parcel = submit()
    shop.wait(3_000)
    assert Alert.objects.count() == 0
    for number in (2, 0, 1):
        assert order.steps["track"] == "waiting"
        for _ in range(2):
            shop.complete(parcel(number), "ship", {"id": str(number)})
        shop.go()
    assert order.result("track") == {"parcels": [{"id": "0"}, {"id": "1"}, {"id": "2"}]}


def test_task_that_is_part_of_another_is_waited_for_and_undone_with_it(shop):
    order = shop.submit("wrapped", DATA)
    shop.go()
    assert order.state == "processed"
    assert [call.step for call in shop.calls("carrier.book")] == ["wrap", "ship"]
    undo(shop, order)
    assert order.state == "undone"
    assert [call.step for call in shop.calls("carrier.cancel")] == ["ship", "wrap"]
