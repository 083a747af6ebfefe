"""What an order by the API costs beyond its lines: shipping, tax, a discount."""

import pytest

from orders.lifecycle import discounts
from orders.models import DatedPrice, DiscountCode, Order, Placement, ShippingPrice
from tests.support.applications import Caller, application, new_order
from tests.support.shop import carry_out, finish_all, products

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rates")]
BERLIN = {
    "name": "Ada", "street": "Kastanienallee 1", "postcode": "10435", "city": "Berlin", "country": "DE",
}  # fmt: skip


@pytest.fixture
def till():
    products()
    ShippingPrice.objects.create(country="DE", price=490, free_from=5000)
    return Caller(application("till")[1])


def test_order_has_shipping_and_tax(till):
    answer = till.place(order=new_order(address=BERLIN, expected_total=2490))
    assert answer.status_code == 202, answer.text
    order = answer.json()
    assert (order["total"], order["shipping"], order["discount"]) == (2490, 490, 0)
    assert order["taxes"] == [{"percent": 19.0, "net": 2092, "tax": 398}]
    carry_out()
    finish_all()
    later = till.get(f"orders/{order['id']}").json()
    assert {name: later[name] for name in order} == order
    assert Order.objects.get().total == 2490


def test_expected_total_includes_shipping(till):
    answer = till.place(order=new_order(address=BERLIN, expected_total=2000))
    assert (answer.status_code, answer.json()["code"]) == (409, "price_changed")
    assert (answer.json()["total"], answer.json()["shipping"]) == (2490, 490)
    assert not Placement.objects.exists()


def test_order_takes_a_code(till):
    DiscountCode.objects.create(code="SPRING", percent=1000, most=1)
    order = new_order(address=BERLIN, discount_code="spring", expected_total=2290)
    first = till.place(order=order)
    assert first.status_code == 202, first.text
    assert (first.json()["discount"], first.json()["discount_code"]) == (200, "SPRING")
    assert till.place(order=order).json() == first.json()
    assert DiscountCode.objects.get().used == 1
    refused = till.place("key-2", order)
    assert (refused.status_code, refused.json()["code"]) == (409, "no_discount")
    assert refused.json()["errors"][0]["field"] == "discount_code"
    assert Placement.objects.count() == 1


def test_code_that_a_request_with_the_same_key_used_up_is_that_order(till, monkeypatch):
    DiscountCode.objects.create(code="SPRING", percent=1000, most=1)
    order = new_order(discount_code="SPRING")
    seen, answers = discounts.find, []

    def slower(*known):
        monkeypatch.setattr(discounts, "find", seen)
        answers.append(till.place(order=order).json())
        return seen(*known)

    monkeypatch.setattr(discounts, "find", slower)
    assert till.place(order=order).json() == answers[0]
    assert Placement.objects.count() == 1


def test_code_that_is_not_valid_orders_nothing(till):
    answer = till.place(order=new_order(discount_code="WINTER"))
    assert (answer.status_code, answer.json()["code"]) == (409, "no_discount")
    assert till.place(order=new_order(discount_code="x" * 31)).status_code == 422
    assert not Placement.objects.exists()


def test_key_of_the_former_release_stands_for_the_same_order(till):
    """A release without codes had no such field in the content of a key."""
    first = till.place(order=new_order())
    assert till.place(order=new_order(discount_code="")).json() == first.json()


def test_price_that_is_due_is_charged(till):
    DatedPrice.objects.create(product_id="sku-0", starts_at="2020-01-01T00:00Z", price=777)
    DatedPrice.objects.create(product_id="sku-0", starts_at="2099-01-01T00:00Z", price=1)
    assert till.get("products").json()["products"][0]["unit_price"] == 777
    assert till.place(order=new_order()).json()["total"] == 1554


def test_placing_costs_one_query_more_than_without_charges(till, django_assert_max_num_queries):
    till.place("before", new_order())
    with django_assert_max_num_queries(11):
        till.place(order=new_order(address=BERLIN))
