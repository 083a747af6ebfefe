"""The checkout: an order is placed once per token, at the price shown, or not at all."""

from collections import Counter
from functools import partial
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from orchestration import submission
from orchestration.models import Submission, Task
from orders.lifecycle.tracking import RECEIVED
from orders.models import Order, OrderLine, Placement, Product
from orders.rate_limit import Limit
from orders.shop.checkout_token import BadToken, Token, read_token
from orders.shop.views.checkout import CHANGED, ORDERED_BEFORE, TOO_MANY
from tests.support.shop import (
    buy,
    fill_cart,
    open_checkout,
    order_in,
    send,
    verdict,
    visit,
)
from tests.support.together import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelf")]


def nothing_written():
    return not (Submission.objects.exists() or Placement.objects.exists() or Task.objects.exists())


def test_checkout_posts_and_shows_the_order(client):
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
    assert verdict(visit(client, response["Location"])) == RECEIVED


def test_order_is_created_by_the_submission(client):
    order = buy(client, sku_0=2, sku_2=3)
    assert submission.take(100) == 2  # the order, and the e-mail that it was received
    row = Order.objects.get(id=order)
    assert (row.total, row.currency, row.status, row.city) == (5600, "EUR", "received", "Genève")
    assert set(OrderLine.objects.values_list("sku", "quantity")) == {("sku-0", 2), ("sku-2", 3)}
    assert Task.objects.get(reference=str(order)).steps.count() == 7
    assert not Submission.objects.exists()


def test_checkout_empties_the_cart(client):
    buy(client)
    assert client.get("/checkout/").status_code == 302
    assert 'class="empty"' in client.get("/cart/").text


def test_checkout_repeated_is_one_order(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    first = send(client, token)
    assert send(client, token)["Location"] == first["Location"]
    submission.take(100)
    assert send(client, token)["Location"] == first["Location"]
    assert submission.take(100) == 0
    assert (Order.objects.count(), Placement.objects.count()) == (1, 1)


def test_checkout_over_the_rate_limit_keeps_the_cart(client, monkeypatch):
    limit = Limit("checkout", most=1, seconds=600)
    monkeypatch.setattr("orders.shop.views.checkout.ORDERS", limit)
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    first = send(client, token)
    assert send(client, token)["Location"] == first["Location"]  # a repetition is not counted
    fill_cart(client, sku_1=1)
    token = open_checkout(client)
    for _ in range(2):
        answer = send(client, token)
        assert (answer.status_code, answer["Retry-After"]) == (429, "600")
        assert TOO_MANY % {"minutes": 10} in answer.text
        assert 'value="Ada Lovelace"' in answer.text
    assert Placement.objects.count() == 1
    limit = Limit("checkout", most=9, seconds=600)
    monkeypatch.setattr("orders.shop.views.checkout.ORDERS", limit)
    assert send(client, token).status_code == 303


def test_checkout_in_two_tabs_is_one_order(client):
    fill_cart(client, sku_0=1)
    tab, other = open_checkout(client), open_checkout(client)
    assert send(client, tab)["Location"] == send(client, other)["Location"]


def test_checkout_with_an_outdated_cart(client):
    fill_cart(client, sku_0=1)
    old = open_checkout(client)
    fill_cart(client, sku_1=1)
    response = send(client, old)
    assert response.status_code == 422
    assert str(CHANGED) in response.text
    assert nothing_written()


def test_checkout_with_a_used_token_shows_the_first_order(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    send(client, token)
    response = send(client, token, street="Elsewhere 1")
    assert response.status_code == 409
    assert str(ORDERED_BEFORE) in response.text
    assert send(client, token, email="").status_code == 409
    submission.take(100)
    assert send(client, token, city="Bern").status_code == 409
    assert Order.objects.get().street == "Rue de Lyon 12"


def test_checkout_conflict_of_another_visitor_hides_personal_data(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    send(client, token)
    submission.take(100)
    response = send(Client(), token, city="Bern")
    assert response.status_code == 409
    assert "Lovelace" not in response.text


def test_checkout_with_an_invalid_token(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    for bad in ("", token[:-2], "x" + token):
        response = send(client, bad)
        assert response.status_code == 422
        with pytest.raises(BadToken) as problem:
            read_token(bad)
        assert response.context["problem"] == str(problem.value)
    assert nothing_written()


def test_checkout_with_another_carts_token(client):
    fill_cart(client, sku_0=1)
    open_checkout(client)
    for total in (1, 1000):
        token = Token(order=uuid4(), cart="0" * 64, total=total).sign()
        assert send(client, token).status_code == 422
    assert nothing_written()


def test_checkout_after_a_price_change(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    Product.objects.filter(sku="sku-0").update(price=9999)
    response = send(client, token)
    assert response.status_code == 422
    assert "€99.99" in response.text
    assert nothing_written()


def test_checkout_with_an_inactive_product(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    Product.objects.filter(sku="sku-0").update(active=False)
    assert send(client, token).status_code == 422
    assert nothing_written()


def test_checkout_ignores_prices_in_the_form(client):
    fill_cart(client, sku_0=2)
    send(client, open_checkout(client), total="1", price="1", quantity="-5", currency="USD")
    data = Submission.objects.get(workflow="process_order").data
    assert (data["total"], data["currency"], data["lines"][0]["quantity"]) == (2000, "EUR", 2)


def test_checkout_with_invalid_fields_keeps_the_input(client):
    fill_cart(client, sku_0=1)
    response = send(client, open_checkout(client), email="ada", city="", name="Zoë <b>")
    html = response.text
    assert response.status_code == 422
    assert 'class="errors"' in html
    assert 'href="#id_email"' in html
    assert 'id="id_email_error"' in html
    assert 'aria-invalid="true"' in html
    assert "Zoë &lt;b&gt;" in html
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
def test_checkout_with_an_invalid_field(client, changes):
    fill_cart(client, sku_0=1)
    assert send(client, open_checkout(client), **changes).status_code == 422
    assert nothing_written()


def test_checkout_with_an_account(client):
    user = get_user_model().objects.create_user("ada", "ada@example.org", "secret")
    client.force_login(user)
    fill_cart(client, sku_0=1)
    assert "ada@example.org" in client.get("/checkout/").text
    order = buy(client)
    submission.take(100)
    assert Order.objects.get(id=order).customer == user


def test_checkout_without_a_csrf_token():
    strict = Client(enforce_csrf_checks=True)
    response = strict.post(reverse("shop:checkout"), {})
    assert response.status_code == 403
    assert 'data-ordered="no"' in response.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("different", [False, True], ids=["same content", "different content"])
def test_checkout_in_parallel_is_one_order(client, different):
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
    assert submission.take(100) <= 2  # with the e-mail that it was received
    assert Order.objects.count() == 1
    if different:
        assert answers == {303: 1, 409: 49}
    else:
        assert answers == {303: 50}
