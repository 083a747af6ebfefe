"""Returns and another address by the API."""

from uuid import UUID, uuid4

import pytest

from orchestration.testing.outcomes import done, later
from orders.models import Order, Return
from tests.support.applications import Caller, application, new_order
from tests.support.exchanges import inspected
from tests.support.shop import products

pytestmark = pytest.mark.django_db
ADDRESS = {
    "name": "Ada King", "street": "Rue Neuve 3", "postcode": "1201", "city": "Genève", "country": "CH",
}  # fmt: skip


@pytest.fixture
def till(run):
    products()
    return Caller(application("till")[1])


@pytest.fixture
def order(run, till):
    order = till.place().json()["id"]
    run.go()
    return order


def body_of(order, quantity=1, **more):
    return {
        "order": order,
        "lines": [{"sku": "sku-0", "quantity": quantity}],
        "reason": "damaged",
        **more,
    }


def ask(till, body, key="r-1"):
    return till.post("returns", body, Idempotency_Key=key)


def test_return_is_asked_for_once_and_listed(run, till, order):
    answers = [ask(till, body_of(order)) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    listed = till.get("returns", order=order).json()["returns"]
    assert listed == [answers[0].json()]
    assert (listed[0]["state"], listed[0]["amount"]) == ("asked", 1000)
    assert Return.objects.get().order_id == UUID(order)


def test_same_key_with_other_content_is_refused(till, order):
    ask(till, body_of(order))
    answer = ask(till, body_of(order, 2))
    assert (answer.status_code, answer.json()["code"]) == (422, "key_used")
    assert Return.objects.count() == 1


def test_more_than_is_left_is_refused_with_what_is(till, order):
    ask(till, body_of(order))
    answer = ask(till, body_of(order, 2), "r-2")
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_units")
    assert answer.json()["left"] == {"sku-0": 1}
    twice = body_of(order, lines=[{"sku": "sku-0", "quantity": 1}] * 2)
    assert ask(till, twice, "r-3").json()["errors"][0]["field"] == "lines.1.sku"
    assert Return.objects.count() == 1


def test_order_under_way_is_not_returnable(run, till):
    run.script("payment.authorize", later({"id": "pi_1"}, id="pi_1", look=300))
    order = till.place().json()["id"]
    run.go()
    answer = ask(till, body_of(order))
    assert (answer.status_code, answer.json()["code"]) == (409, "not_returnable")


def test_order_of_another_application_is_not_found(till, order):
    other = Caller(application("other")[1])
    assert ask(other, body_of(order)).status_code == 404
    assert other.get("returns", order=order).status_code == 404
    assert other.post(f"orders/{order}/address", ADDRESS).status_code == 404
    assert ask(till, body_of(str(uuid4()))).status_code == 404


def test_address_is_changed_until_the_parcel_is_booked(run, till):
    run.script("payment.authorize", later({"id": "pi_1"}, id="pi_1", look=300))
    order = till.place(order=new_order()).json()["id"]
    early = till.post(f"orders/{order}/address", ADDRESS)
    assert (early.status_code, early.json()["code"]) == (409, "not_taken_yet")
    run.go()
    answer = till.post(f"orders/{order}/address", ADDRESS)
    assert (answer.status_code, answer.json()["address_change"]) == (202, "asked")
    run.go()
    assert till.get(f"orders/{order}").json()["address_change"] is None
    assert Order.objects.get().street == "Rue Neuve 3"
    run.complete(
        run.task("process_order", order), "authorize_payment", {"id": "pi_1", "status": "x"}
    )
    run.go()
    late = till.post(f"orders/{order}/address", {**ADDRESS, "street": "Rue 4"})
    assert (late.status_code, late.json()["code"]) == (409, "cannot_be_readdressed")
    assert Order.objects.get().street == "Rue Neuve 3"


@pytest.mark.parametrize(
    ("wrong", "status", "code"),
    [
        ({"postcode": "x"}, 422, "invalid"),
        ({"street": ""}, 422, "invalid"),
        ({"country": "DE", "postcode": "10435"}, 409, "cannot_be_readdressed"),
    ],
)
def test_wrong_address_changes_nothing(run, till, wrong, status, code):
    run.script("payment.authorize", later({"id": "pi_1"}, id="pi_1", look=300))
    order = till.place().json()["id"]
    run.go()
    answer = till.post(f"orders/{order}/address", {**ADDRESS, **wrong})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert Order.objects.get().asked is None


def wished(order, *wish, quantity=1):
    """Return the body of a return for other goods, given as (SKU, units)."""
    lines = [{"sku": sku, "quantity": count} for sku, count in wish]
    return body_of(order, quantity, exchange_for=lines)


def test_exchange_is_asked_for_and_its_order_is_the_callers(run, till, order):
    answers = [ask(till, wished(order, ("sku-0", 1))) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    (line,) = answers[0].json()["exchange_for"]
    assert (line["sku"], line["price"], answers[0].json()["replacement"]) == ("sku-0", 1000, None)
    run.script("shipping.label", done(id="lbl_1", tracking="RET1"))
    inspected(run, Return.objects.get())
    (shown,) = till.get("returns", order=order).json()["returns"]
    assert shown["state"] == "replaced"
    new = till.get(f"orders/{shown['replacement']}").json()
    assert (new["total"], new["exchange_paid"], new["to_pay"]) == (1000, 1000, 0)
    listed = till.get("orders").json()["orders"]
    assert [summary["total"] for summary in listed] == [1000, 2000]


@pytest.mark.parametrize(
    ("wish", "status", "code"),
    [
        ([("sku-1", 1)], 409, "too_dear"),
        ([("sku-0", 2)], 409, "too_dear"),
        ([("sku-9", 1)], 409, "not_sold"),
        ([("sku-0", 1), ("sku-0", 1)], 422, "invalid"),
        ([("sku-0", 0)], 422, "invalid"),
    ],
)
def test_wrong_wish_is_refused_and_changes_nothing(till, order, wish, status, code):
    answer = ask(till, wished(order, *wish))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    if code == "not_sold":
        assert answer.json()["errors"][0]["field"] == "exchange_for.0.sku"
    assert not Return.objects.exists()


def test_same_key_with_another_wish_is_refused(till, order):
    ask(till, wished(order, ("sku-0", 1)))
    answer = ask(till, body_of(order))
    assert (answer.status_code, answer.json()["code"]) == (422, "key_used")
