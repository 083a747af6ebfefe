"""Placing an order: once per token, at the price that was seen, or not at all."""

from collections import Counter
from functools import partial
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from orchestration import submission
from orchestration.models import Submission, Task
from orders.checkout import Token
from orders.models import Order, OrderLine, Placement, Product
from orders.throttle import Limit
from tests.shop import buy, fill_cart, open_checkout, order_in, products, send
from tests.together import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _shelf(request, db):
    products()


def nothing_written():
    return not (Submission.objects.exists() or Placement.objects.exists() or Task.objects.exists())


def test_an_order_is_posted_and_shown_at_once(client):
    fill_cart(client, sku_0=2, sku_1=1)
    response = send(client, open_checkout(client))
    assert response.status_code == 303
    order = order_in(response)
    posted, letter = Submission.objects.order_by("id")
    assert (letter.workflow, letter.data["email"]) == ("tell_customer", "ada@example.org")
    assert f"localhost:8000/orders/{order}/?t=" in letter.data["mail"]["text"]
    assert posted.reference == str(order)
    assert posted.reply_to == "shop"
    assert posted.data["total"] == 3100
    assert [line["quantity"] for line in posted.data["lines"]] == [2, 1]
    assert "We received your order" in client.get(response["Location"]).content.decode()


def test_the_submission_process_makes_it_an_order(client):
    order = buy(client, sku_0=2, sku_2=3)
    assert submission.take(100) == 2  # the order, and the letter that it was received
    row = Order.objects.get(id=order)
    assert (row.total, row.currency, row.status, row.city) == (5600, "EUR", "received", "Genève")
    assert set(OrderLine.objects.values_list("sku", "quantity")) == {("sku-0", 2), ("sku-2", 3)}
    assert Task.objects.get(reference=str(order)).steps.count() == 5
    assert not Submission.objects.exists()


def test_the_cart_is_empty_afterwards_and_going_back_is_harmless(client):
    buy(client)
    assert client.get("/checkout/").status_code == 302
    assert "Your cart is empty" in client.get("/cart/").content.decode()


def test_a_second_send_is_the_same_order_before_and_after_it_is_taken(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    first = send(client, token)
    assert send(client, token)["Location"] == first["Location"]
    submission.take(100)
    assert send(client, token)["Location"] == first["Location"]
    assert submission.take(100) == 0
    assert (Order.objects.count(), Placement.objects.count()) == (1, 1)


def test_very_many_orders_from_one_address_wait_and_nothing_is_lost(client, monkeypatch):
    limit = Limit("checkout", most=1, seconds=600)
    monkeypatch.setattr("orders.views.checkout.ORDERS", limit)
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    first = send(client, token)
    assert send(client, token)["Location"] == first["Location"]  # the same one is no other
    fill_cart(client, sku_1=1)
    token = open_checkout(client)
    for _ in range(2):
        answer = send(client, token)
        page = answer.content.decode()
        assert (answer.status_code, answer["Retry-After"]) == (429, "600")
        assert "Nothing was ordered" in page
        assert "Please wait 10 minutes" in page
        assert 'value="Ada Lovelace"' in page
    assert Placement.objects.count() == 1
    limit = Limit("checkout", most=9, seconds=600)
    monkeypatch.setattr("orders.views.checkout.ORDERS", limit)
    assert send(client, token).status_code == 303


def test_two_tabs_with_the_same_cart_are_the_same_order(client):
    fill_cart(client, sku_0=1)
    one, other = open_checkout(client), open_checkout(client)
    assert send(client, one)["Location"] == send(client, other)["Location"]


def test_a_tab_from_before_the_cart_changed_is_told_so(client):
    fill_cart(client, sku_0=1)
    old = open_checkout(client)
    fill_cart(client, sku_1=1)
    response = send(client, old)
    assert response.status_code == 422
    assert "has changed since you opened this page" in response.content.decode()
    assert nothing_written()


def test_the_same_token_with_other_content_shows_the_first_order(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    send(client, token)
    response = send(client, token, street="Elsewhere 1")
    assert response.status_code == 409
    assert "You have placed this order already" in response.content.decode()
    assert send(client, token, email="").status_code == 409
    submission.take(100)
    assert send(client, token, city="Bern").status_code == 409
    assert Order.objects.get().street == "Rue de Lyon 12"


def test_a_conflict_shows_a_stranger_nothing_personal(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    send(client, token)
    submission.take(100)
    response = send(Client(), token, city="Bern")
    assert response.status_code == 409
    assert "Lovelace" not in response.content.decode()


def test_an_altered_token_is_refused(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    for bad in ("", token[:-2], "x" + token):
        response = send(client, bad)
        assert response.status_code == 422
        assert "altered or is incomplete" in response.content.decode()
    assert nothing_written()


def test_a_signed_token_for_another_cart_or_price_is_refused(client):
    fill_cart(client, sku_0=1)
    open_checkout(client)
    for total in (1, 1000):
        token = Token(order=uuid4(), cart="0" * 64, total=total).sign()
        assert send(client, token).status_code == 422
    assert nothing_written()


def test_a_price_that_rose_meanwhile_is_not_charged_unseen(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    Product.objects.filter(sku="sku-0").update(price=9999)
    response = send(client, token)
    assert response.status_code == 422
    assert "€99.99" in response.content.decode()
    assert nothing_written()


def test_a_product_that_is_gone_is_not_ordered(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    Product.objects.filter(sku="sku-0").update(active=False)
    assert send(client, token).status_code == 422
    assert nothing_written()


def test_prices_and_quantities_in_the_form_are_ignored(client):
    fill_cart(client, sku_0=2)
    send(client, open_checkout(client), total="1", price="1", quantity="-5", currency="USD")
    data = Submission.objects.get(workflow="process_order").data
    assert (data["total"], data["currency"], data["lines"][0]["quantity"]) == (2000, "EUR", 2)


def test_errors_stand_on_top_and_beside_their_fields_and_values_are_kept(client):
    fill_cart(client, sku_0=1)
    response = send(client, open_checkout(client), email="nobody", city="", name="Zoë <b>")
    page = response.content.decode()
    assert response.status_code == 422
    assert 'class="errors"' in page
    assert 'href="#id_email"' in page
    assert 'id="id_email_error"' in page
    assert 'aria-invalid="true"' in page
    assert "Zoë &lt;b&gt;" in page
    assert nothing_written()


@pytest.mark.parametrize(
    "changes",
    [
        {"country": "XX"},
        {"payment_method": "pm_card_gold"},
        {"payment_method": ""},
        {"name": "x" * 101},
        {"street": "a\0b"},
        {"email": "a" * 250 + "@b.org"},
    ],
)
def test_what_cannot_be_delivered_or_paid_is_refused(client, changes):
    fill_cart(client, sku_0=1)
    assert send(client, open_checkout(client), **changes).status_code == 422
    assert nothing_written()


def test_a_customer_with_an_account_owns_the_order(client):
    user = get_user_model().objects.create_user("ada", "ada@example.org", "secret")
    client.force_login(user)
    fill_cart(client, sku_0=1)
    assert "ada@example.org" in client.get("/checkout/").content.decode()
    order = buy(client)
    submission.take(100)
    assert Order.objects.get(id=order).customer == user


def test_a_form_without_csrf_token_orders_nothing():
    strict = Client(enforce_csrf_checks=True)
    response = strict.post(reverse("shop:checkout"), {})
    assert response.status_code == 403
    assert "Nothing was ordered" in response.content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("different", [False, True], ids=["same content", "different content"])
def test_fifty_posts_at_once_with_one_token_are_one_order(client, different):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    cookies = client.cookies

    def post(number):
        own = Client()
        own.cookies = cookies.copy()
        names = [f"Ada {number}-{turn}" if different else "Ada" for turn in range(5)]
        return [send(own, token, name=name).status_code for name in names]

    came = at_once({number: partial(post, number) for number in range(10)})
    answers = Counter(status for statuses in came.values() for status in statuses)
    assert Placement.objects.count() == 1
    assert submission.take(100) <= 2  # with the letter that says so
    assert Order.objects.count() == 1
    if different:
        assert answers == {303: 1, 409: 49}
    else:
        assert answers == {303: 50}
