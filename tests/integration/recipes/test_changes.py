"""Orders that are changed while they run."""

from uuid import uuid4

import pytest

from orchestration.models import TaskRequest
from orchestration.testing import outcomes

DATA = {"order": "o-1", "cents": 900, "to": "Bath", "risky": True}


@pytest.fixture
def order(shop):
    order = shop.submit("reviewed", DATA, reference="o-1")
    shop.go()
    return order


def refusals():
    return [*TaskRequest.objects.order_by("id").values_list("refusal", flat=True)]


def addresses(shop):
    return [call.payload["to"] for call in shop.calls("carrier.book")]


def test_parcel_goes_to_the_new_address(shop, order, page):
    click = uuid4()
    for _ in range(2):
        page["moved"]("o-1", "York", click)
    shop.complete(order, "review", {"ok": True})
    shop.go()
    assert (order.state, addresses(shop), refusals()) == ("processed", ["York"], ["", ""])


def test_address_is_changed_before_the_order_is_taken(shop, page):
    order = shop.submit("reviewed", {**DATA, "risky": False}, reference="o-2")
    page["moved"]("o-2", "York", uuid4())
    shop.go()
    assert order.state == "processed"
    assert addresses(shop) in (["York"], ["Bath"])  # as the carrier may be quicker
    assert (addresses(shop) == ["Bath"]) == (refusals() != [""])


def test_address_is_refused_once_the_carrier_has_the_parcel(shop, order, page):
    shop.script("carrier.book", outcomes.later())
    shop.complete(order, "review", {"ok": True})
    shop.go()
    page["moved"]("o-1", "York", uuid4())
    shop.go()
    assert refusals() == ["", "TAKEN"]
    shop.complete(order, "ship", {"id": "p"})
    shop.go()
    assert (order.state, addresses(shop)) == ("processed", ["Bath"])


def test_address_of_an_order_that_has_ended_is_refused(shop, order, page):
    shop.complete(order, "review", {"ok": True})
    shop.go()
    page["moved"]("o-1", "York", uuid4())
    shop.go()
    assert refusals()[-1] in {"TAKEN", "ENDED"}
