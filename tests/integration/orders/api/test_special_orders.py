"""What the API says and takes of gift cards, free orders, releases and goods made to order."""

from datetime import timedelta

import pytest
from django.utils import timezone

from orders.lifecycle import gift_cards
from orders.models import DiscountCode, GiftCard, Order, Placement, Product
from orders.rate_limit import Limit
from tests.support.applications import Caller, application, new_order
from tests.support.gifts import gift_card_product, issued
from tests.support.shop import carry_out, products

pytestmark = pytest.mark.django_db


@pytest.fixture
def till():
    products()
    return Caller(application("till")[1])


def without(order, name):
    return {key: value for key, value in order.items() if key != name}


def test_gift_card_pays_a_part_once(till):
    order = new_order(gift_card=issued(1500).unsent.lower())
    first = till.place(order=order)
    assert first.status_code == 202, first.text
    assert (first.json()["total"], first.json()["gift_card_paid"], first.json()["to_pay"]) == (
        2000, 1500, 500,
    )  # fmt: skip
    assert till.place(order=order).json() == first.json()
    assert GiftCard.objects.get().balance == 0
    carry_out()
    later = till.get(f"orders/{first.json()['id']}").json()
    assert (later["gift_card_paid"], later["to_pay"]) == (1500, 500)
    refused = till.place("key-2", order)
    assert (refused.status_code, refused.json()["code"]) == (409, "no_gift_card")
    assert refused.json()["errors"][0]["field"] == "gift_card"
    assert Placement.objects.count() == 1


def test_order_that_a_card_pays_needs_no_payment_method(till):
    order = without(new_order(gift_card=issued(5000).unsent), "payment_method")
    answer = till.place(order=order)
    assert (answer.status_code, answer.json()["to_pay"]) == (202, 0)
    carry_out()
    assert Order.objects.get().payment_method == "none"


def test_free_order_may_be_expected(till):
    DiscountCode.objects.create(code="FREE", percent=100_00)
    answer = till.place(order=new_order(discount_code="FREE", expected_total=0))
    assert (answer.status_code, answer.json()["total"], answer.json()["to_pay"]) == (202, 0, 0)


def test_order_with_something_to_pay_needs_a_payment_method(till):
    answer = till.place(order=without(new_order(gift_card=issued(1500).unsent), "payment_method"))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "payment_method"
    assert not Placement.objects.exists()


def test_tries_of_codes_are_limited_by_application(till, monkeypatch):
    monkeypatch.setattr(gift_cards, "GUESSES", Limit("gift-card", most=1, seconds=600))
    wrong = new_order(gift_card="0000-0000-0000-0000")
    assert till.place("k1", wrong).json()["code"] == "no_gift_card"
    right = till.place("k2", new_order(gift_card=issued(1500).unsent))
    assert right.json()["detail"] == str(gift_cards.GUESSES.refusal_text)
    other = Caller(application("shelf")[1])
    assert other.place("k3", new_order(gift_card=issued(1500).unsent)).status_code == 202


def test_gift_cards_are_not_bought_with_codes(till):
    gift_card_product()
    order = new_order(gift_card=issued(9000).unsent, lines=[{"sku": "gift", "quantity": 1}])
    assert till.place(order=order).json()["code"] == "no_gift_card"


def test_release_and_days_are_in_products_and_orders(till):
    released = timezone.localdate() + timedelta(days=5)
    Product.objects.filter(sku="sku-0").update(released_on=released)
    Product.objects.filter(sku="sku-1").update(made_within_days=14)
    gift_card_product()
    shown = {row["sku"]: row for row in till.get("products").json()["products"]}
    assert shown["sku-0"]["released_at"].startswith(str(released))
    assert shown["sku-1"]["made_within_days"] == 14
    assert (shown["gift"]["delivery"], shown["sku-2"]["delivery"]) == ("gift_card", "parcel")
    assert (shown["sku-2"]["released_at"], shown["sku-2"]["made_within_days"]) == (None, None)
    lines = [{"sku": sku, "quantity": 1} for sku in ("sku-0", "sku-1")]
    order = till.place(order=new_order(lines=lines)).json()
    assert order["released_at"].startswith(str(released))
    assert order["made_within_days"] == 14


def test_order_of_before_has_all_of_it_to_pay(till):
    order = till.place(order=new_order()).json()
    row = Placement.objects.get()
    row.offer = {name: row.offer[name] for name in ("total", "currency", "lines")}
    row.save()
    known = till.get(f"orders/{order['id']}").json()
    assert (known["to_pay"], known["gift_card_paid"], known["released_at"]) == (2000, 0, None)
