"""Claims for lost parcels by the API."""

import pytest

from orchestration.testing.outcomes import done, later
from orders.models import Claim, Order
from tests.support.applications import Caller, application
from tests.support.shop import products

pytestmark = pytest.mark.django_db


@pytest.fixture
def till(run, settings):
    settings.CLAIM_AFTER_DAYS = 0
    products()
    run.script(
        "shipping.book", done(id="shp_1", tracking="TRK1"), done(id="shp_2", tracking="TRK2")
    )
    return Caller(application("till")[1])


@pytest.fixture
def order(run, till):
    order = till.place().json()["id"]
    run.go()
    return order


def claim(till, order, parcel="TRK1"):
    return till.post("claims", {"order": order, "parcel": parcel})


def test_parcel_is_claimed_once_and_its_goods_are_sent_again(run, till, order):
    answers = [claim(till, order) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    asked = answers[0].json()
    assert (asked["parcel"], asked["state"]) == ("TRK1", "asked")
    run.go()
    decision = {"send_again": True, "percent": 0, "note": "Sorry."}
    run.complete(run.task("claim_parcel", asked["id"]), "decide_claim", decision, actor="rita")
    run.go()
    (listed,) = till.get("claims", order=order).json()["claims"]
    assert listed == {**asked, "state": "again", "again": "TRK2", "note": "Sorry."}
    assert Claim.objects.count() == 1


@pytest.mark.parametrize(
    ("parcel", "status", "code"),
    [("TRK9", 409, "not_claimable"), ("", 422, "invalid"), ("TRK\n1", 422, "invalid")],
)
def test_parcel_that_the_order_does_not_have_is_refused(till, order, parcel, status, code):
    answer = claim(till, order, parcel)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not Claim.objects.exists()


def test_parcel_of_an_order_under_way_or_sent_just_now_is_refused(run, till, order, settings):
    run.script("payment.authorize", later({"id": "pi_1"}, id="pi_1", look=300))
    under_way = till.place("2").json()["id"]
    run.go()
    assert claim(till, under_way).json()["code"] == "not_claimable"
    settings.CLAIM_AFTER_DAYS = 7
    assert claim(till, order).json()["code"] == "not_claimable"
    assert not Claim.objects.exists()


def test_order_of_another_application_is_not_found(till, order):
    other = Caller(application("other")[1])
    assert claim(other, order).status_code == 404
    assert other.get("claims", order=order).status_code == 404
    assert Order.objects.get().claims.count() == 0
