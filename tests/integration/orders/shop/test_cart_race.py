"""Changes of one browser's cart at the same time, each on a connection of its own."""

import pytest
from django.test import Client

from orders.models import Placement, Visitor
from tests.support.shop import fill_cart, open_checkout, products, send
from tests.support.together import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _shelf():
    products()


def same(client):
    """Return another window of the same browser."""
    other = Client()
    other.cookies.update(client.cookies)
    return other


def quantities(client):
    row = Visitor.objects.get(key=client.cookies["visitor"].value)
    return row.content.get("cart", {}).get("quantities", {})


@pytest.mark.parametrize("first_visit", [True, False])
def test_additions_at_once_are_all_kept(client, first_visit):
    client.get("/")
    if not first_visit:
        fill_cart(client, sku_0=1)
    adds = {
        (sku, number): lambda sku=sku: fill_cart(same(client), **{sku: 1})
        for sku in ("sku_0", "sku_1", "sku_2")
        for number in range(2)
    }
    at_once(adds)
    assert Visitor.objects.count() == 1
    assert quantities(client) == {"sku-0": 2 + (not first_visit), "sku-1": 2, "sku-2": 2}


@pytest.mark.parametrize("added", ["sku_0", "sku_1"])
def test_addition_beside_the_checkout_is_kept_and_what_was_ordered_is_gone(client, added):
    for _ in range(4):
        Placement.objects.all().delete()
        Visitor.objects.all().delete()
        fill_cart(client, sku_0=1)
        token = open_checkout(client)
        answers = at_once(
            {
                "order": lambda token=token: send(same(client), token).status_code,
                "add": lambda: fill_cart(same(client), **{added: 1}),
            }
        )
        left = {added.replace("_", "-"): 1}
        if answers["order"] == 422:  # the cart had changed before
            assert quantities(client) == {
                "sku-0": 1,
                added.replace("_", "-"): 1 + (added == "sku_0"),
            }
        else:
            assert quantities(client) == left


def test_checkout_sent_twice_takes_nothing_out_of_the_next_cart(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    assert send(client, token).status_code == 303
    fill_cart(client, sku_0=1)
    assert send(client, token).status_code == 303
    assert quantities(client) == {"sku-0": 1}


def test_orders_at_once_are_all_remembered(client):
    client.get("/")
    tokens = []
    for sku in ("sku_0", "sku_1"):
        fill_cart(client, **{sku: 1})
        tokens.append(open_checkout(client))
        assert send(client, tokens[-1]).status_code == 303
    Visitor.objects.all().delete()
    at_once({token: lambda token=token: send(same(client), token) for token in tokens})
    assert len(Visitor.objects.get().content["orders"]) == 2
