"""The shop lives by its own rows and its queue: its pages need no right on the engine's tables (P22, P27)."""

import re

import pytest
from django.apps import apps
from django.db import ProgrammingError, connection, transaction

from orchestration.models import Event, Task
from orders.access import link
from orders.message import order_number
from orders.models import Order
from tests.engine import staff
from tests.shop import (
    answer,
    ask,
    buy,
    carry_out,
    declined,
    finish_all,
    placed,
    products,
    send,
    sold_out,
)
from tests.shop_role import ROLE, Visitor, in_role, make_role

pytestmark = pytest.mark.django_db
VISA = {"attempt": 1, "payment_method": "pm_card_visa"}


@pytest.fixture(autouse=True)
def _shop():
    products()
    staff()
    make_role()


@pytest.fixture
def client():
    return Visitor()


def page(client, order):
    response = client.get(f"/orders/{order}/")
    assert response.status_code == 200
    return response.content.decode()


def test_the_role_has_no_right_on_any_table_of_the_engine():
    allowed = "SELECT has_table_privilege(%s, %s, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')"
    models = apps.get_app_config("orchestration").get_models(include_auto_created=True)
    tables = {model._meta.db_table for model in models}
    assert len(tables) > 20
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(allowed, [ROLE, table])
            assert cursor.fetchone() == (False,), table


def test_the_role_is_what_the_pages_run_in(client):
    """Of the tests below, which would show nothing otherwise."""
    refused = pytest.raises(ProgrammingError, match="permission denied")
    with in_role(), refused, transaction.atomic():
        Task.objects.count()
    assert client.get("/").status_code == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() != (ROLE,)


def test_browse_order_and_follow(client):
    assert client.get("/").status_code == 200
    assert client.get("/products/slug-0/").status_code == 200
    order = buy(client, sku_0=2)
    assert "We received your order" in page(client, order)
    carry_out()
    assert "preparing it" in page(client, order)
    poll = re.search(r'hx-get="([^"]+)"', page(client, order))[1].replace("&amp;", "&")
    assert client.get(poll).status_code == 204
    answer(ask())
    assert "Booking your shipment" in client.get(poll).content.decode()
    finish_all()
    assert "Your order is confirmed" in page(client, order)
    found = Visitor().post(
        "/orders/find/", {"number": order_number(order), "email": "ada@example.org"}
    )
    assert found["Location"] == link(order)


def test_an_account_and_its_orders(client):
    secret = {"password": "correct horse", "again": "correct horse"}
    assert (
        client.post("/account/sign-up/", {"email": "ada@example.org", **secret}).status_code == 303
    )
    order = placed(client)
    finish_all()
    seen = client.get("/account/").content.decode()
    assert order_number(order) in seen
    assert "Confirmed" in seen
    client.post("/logout/")
    again = {"email": "ada@example.org", "password": "correct horse"}
    assert client.post("/account/sign-in/", again).status_code == 303


def test_cancel(client):
    order = placed(client)
    answer(ask())
    assert client.post(f"/orders/{order}/cancel/").status_code == 303
    assert "We have passed your cancellation on" in page(client, order)
    carry_out()
    assert "being cancelled" in page(client, order)
    finish_all()
    assert "Your order was cancelled" in page(client, order)
    assert Task.objects.get(reference=str(order)).state == "undone"


MENDS = {
    "card": (declined, VISA),
    "leave-out": (sold_out, {"attempt": 1, "sku": "sku-1"}),
    "wait": (sold_out, {"attempt": 1}),
}


@pytest.mark.parametrize("what", MENDS)
def test_mend(client, what):
    fails, sent = MENDS[what]
    order = fails(client)
    assert f"/orders/{order}/{what}/" in page(client, order)
    assert client.post(f"/orders/{order}/{what}/", sent).status_code == 303
    assert "we have passed that on" in page(client, order)
    carry_out()
    assert Event.objects.filter(kind="resubmitted").count() == 1
    if what != "wait":
        finish_all()
        assert "Your order is confirmed" in page(client, order)
    assert (Order.objects.get(id=order).waits_until is not None) == (what == "wait")


def test_a_second_checkout_of_the_same_token_is_the_same_order(client):
    client.post("/cart/add/", {"sku": "sku-0", "quantity": 1})
    token = re.search(r'name="token" value="([^"]+)"', client.get("/checkout/").text)[1]
    first, second = send(client, token), send(client, token)
    assert first["Location"] == second["Location"]
    carry_out()
    assert Order.objects.count() == 1
