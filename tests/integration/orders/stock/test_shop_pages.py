"""What customers read of the stock, and what they may do all the same."""

import time

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.utils import ProgrammingError
from django.test import Client

from orders.models import Product
from tests.support.page import page, query_count
from tests.support.shop import fill_cart, open_checkout, order_in, send
from tests.support.shop_role import Visitor, in_role, make_role
from tests.support.stock import read

pytestmark = pytest.mark.django_db
PRODUCT = "/products/slug-0/"


def note(client, path=PRODUCT, **headers):
    """Return what the product's page says of its stock."""
    return page(client.get(path, headers=headers)).texts(".note")[0]


@pytest.mark.parametrize(
    ("levels", "english", "german"),
    [
        ({"main": [2, 9], "south": [1, 0]}, "Only 3 left", "Nur noch 3 da"),
        ({"main": [5, 0]}, "Only 5 left", "Nur noch 5 da"),
        ({"main": [6, 0]}, "In stock", "Vorrätig"),
        ({"main": [0, 4]}, "None left at the last count", "Bei der letzten Zählung keine mehr da"),
    ],
)
def test_page_says_how_many_are_left(client, levels, english, german):
    assert settings.LOW_STOCK == 5
    read(time.time(), {"sku-0": levels})
    assert note(client) == english
    assert note(client, **{"accept-language": "de"}) == german


def test_card_says_what_is_low(client):
    read(time.time(), {"sku-0": {"main": [2, 0]}, "sku-1": {"main": [90, 0]}})
    assert [text.strip() for text in page(client.get("/")).texts("strong")] == ["Only 2 left."]


def test_levels_of_hours_ago_are_not_shown(client):
    read(time.time() - 3601, {"sku-0": {"main": [2, 0]}})
    assert note(client) == "In stock"


@pytest.mark.parametrize(
    ("product", "says"),
    [({"stock": "few"}, "Only a few left"), ({"stock": "none"}, "Sold out")],
)
def test_word_of_the_owner_stands_where_the_inventory_has_many(client, product, says):
    Product.objects.filter(sku="sku-0").update(**product)
    read(time.time(), {"sku-0": {"main": [90, 0]}})
    assert note(client) == says


def test_what_is_sold_out_by_the_owner_says_no_number(client):
    Product.objects.filter(sku="sku-0").update(stock="none")
    read(time.time(), {"sku-0": {"main": [3, 0]}})
    assert note(client) == "Sold out"


def test_what_has_none_left_is_ordered_and_the_reservation_decides(run, client):
    read(time.time(), {"sku-0": {"main": [0, 0]}})
    fill_cart(client, sku_0=1)
    order = order_in(send(client, open_checkout(client)))
    run.go()
    assert run.task("process_order", str(order)).state == "processed"


@pytest.mark.parametrize("path", ["/", PRODUCT])
def test_pages_have_no_further_query(path):
    without = query_count(Client(), path)
    read(time.time(), {f"sku-{number}": {"main": [2, 0], "south": [1, 0]} for number in range(3)})
    assert query_count(Client(), path) == without


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE orders_stocklevel SET on_hand = 9",
        "SELECT 1 FROM orders_stockcorrection",
        "DELETE FROM orders_stocklevel",
    ],
)
def test_web_process_of_the_shop_reads_levels_and_nothing_else_of_them(statement):
    read(time.time(), {"sku-0": {"main": [3, 0]}})
    make_role()
    assert note(Visitor()) == "Only 3 left"
    denied = pytest.raises(ProgrammingError, match="permission denied")
    with in_role(), denied, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
