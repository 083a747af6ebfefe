"""Units that are removed from an order by the API."""

import pytest

from orchestration.testing.outcomes import later
from orders.models import Order, Removal
from tests.support.applications import Caller, application
from tests.support.shop import products

pytestmark = pytest.mark.django_db
ASKED = later({"id": "pi_1", "page": "https://bank.test/"}, id="pi_1", look=300)


@pytest.fixture
def till(run):
    products()
    return Caller(application("till")[1])


@pytest.fixture
def order(run, till):
    """An order of two units, whose payment waits for its customer."""
    run.script("payment.authorize", ASKED)
    order = till.place().json()["id"]
    run.go()
    return order


def remove(till, order, quantity=1, key="k-1", sku="sku-0"):
    body = {"lines": [{"sku": sku, "quantity": quantity}]}
    return till.post(f"orders/{order}/remove", body, Idempotency_Key=key)


def test_units_are_removed_once_and_the_order_says_so(run, till, order):
    answers = [remove(till, order) for _ in range(2)]
    assert [(answer.status_code, answer.json()["removal"]) for answer in answers] == [
        (202, "asked")
    ] * 2
    run.go()
    seen = till.get(f"orders/{order}").json()
    assert (seen["removal"], seen["total"], seen["lines"][0]["quantity"]) == (None, 1000, 1)
    assert seen["removed"] == [{"sku": "sku-0", "name": "Product 0", "quantity": 1}]
    assert remove(till, order).status_code == 202
    run.go()
    assert Removal.objects.count() == 1


def test_same_key_with_other_units_is_refused(run, till, order):
    remove(till, order)
    answer = remove(till, order, 2)
    assert (answer.status_code, answer.json()["code"]) == (422, "key_used")


@pytest.mark.parametrize(
    ("quantity", "sku", "code"),
    [(3, "sku-0", "not_removable"), (1, "sku-9", "not_removable"), (2, "sku-0", "nothing_left")],
)
def test_what_cannot_be_removed_is_a_conflict(till, order, quantity, sku, code):
    answer = remove(till, order, quantity, sku=sku)
    assert (answer.status_code, answer.json()["code"]) == (409, code)
    assert Order.objects.get().asked is None


def test_too_late_is_a_conflict(run, till, order):
    task = run.task("process_order", order)
    run.complete(task, "authorize_payment", {"id": "pi_1", "status": "requires_capture"})
    run.go()
    answer = remove(till, order)
    assert (answer.status_code, answer.json()["code"]) == (409, "not_removable")


def test_order_that_is_not_in_process_yet_is_a_conflict(till):
    order = till.place().json()["id"]
    answer = remove(till, order)
    assert (answer.status_code, answer.json()["code"]) == (409, "not_taken_yet")


def test_order_of_another_application_is_not_found(order):
    other = Caller(application("other")[1])
    assert remove(other, order).status_code == 404
