"""Exchanges on the customer's pages: the wish, another product, and both orders linked."""

from uuid import uuid4

import pytest
from django.test import Client

from orchestration.testing.outcomes import done
from orders.lifecycle import access
from orders.models import Return
from tests.support.exchanges import inspected
from tests.support.page import elements
from tests.support.shop import fill_cart, open_checkout, order_in, order_page, products, send

pytestmark = pytest.mark.django_db


@pytest.fixture
def order(run, client):
    """An order of two of sku-0 at 10.00 and one of sku-1 at 11.00, which is completed."""
    products()
    run.script("shipping.label", done(id="lbl_1", tracking="RET1"))
    fill_cart(client, sku_0=2, sku_1=1)
    placed = order_in(send(client, open_checkout(client)))
    run.go()
    return placed


def form_of(client, order, **changed):
    """Return the fields of the form on the order's page as they are sent."""
    form = elements(order_page(client, order)).only('form[action*="/return/"]')
    fields = {field["name"]: "0" for field in form.all("select")}
    id_ = form.only('input[name="id_"]')["value"]
    return {**fields, "id_": id_, "reason": "damaged", **changed}


def test_customer_asks_for_the_same_on_the_order_page(run, client, order):
    sent = form_of(client, order, **{"units-sku-0": "1", "wish": "same"})
    for _ in range(2):  # the same page sent twice is one return
        assert client.post(f"/orders/{order}/return/", sent).status_code == 303
    row = Return.objects.get()
    assert row.exchange_for["lines"][0]["quantity"] == 1
    asked = elements(order_page(client, order)).only("#returns")
    assert "Product 0" in asked.only("[data-wish]").text
    assert not asked.all("[data-replacement]")
    new = inspected(run, row).replacement
    link = elements(order_page(client, order)).only("[data-replacement]")["href"]
    assert link == access.link(new)
    back = elements(Client().get(link).text).only("#replaces")["href"]
    assert back == access.link(order)


def test_customer_chooses_another_product(run, client, order):
    sent = form_of(client, order, **{"units-sku-1": "1", "wish": "other"})
    answer = client.post(f"/orders/{order}/return/", sent)
    assert answer.status_code == 303
    assert not Return.objects.exists()
    page = elements(client.get(answer["Location"]).text)
    assert [radio["value"] for radio in page.all('input[name="product"]')] == ["sku-0", "sku-1"]
    hidden = {
        field["name"]: field["value"]
        for field in page.only('form[action*="/return/"]').all('input[type="hidden"]')
    }
    dear = client.post(f"/orders/{order}/return/", {**hidden, "product": "sku-0", "pieces": "2"})
    assert (dear.status_code, dear["Location"]) == (303, answer["Location"])
    assert not Return.objects.exists()
    client.post(f"/orders/{order}/return/", {**hidden, "product": "sku-0", "pieces": "1"})
    (line,) = Return.objects.get().exchange_for["lines"]
    assert (line["sku"], line["quantity"], line["unit_price"]) == ("sku-0", 1, 1000)


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"wish": "all"}, 422),
        ({"wish": "other", "product": "sku-0", "pieces": "x"}, 422),
        ({"wish": "other", "product": "sku-0", "pieces": "100"}, 422),
        ({"wish": "other", "product": "\0"}, 422),
        ({"wish": "other", "product": "sku-2", "pieces": "1"}, 303),
        ({"wish": "other", "product": "sku-9"}, 303),
        ({"wish": "same", "units-sku-0": "3"}, 409),
    ],
)
def test_wrong_wish_changes_nothing(client, order, wrong, status):
    sent = form_of(client, order, **{"units-sku-0": "1", **wrong})
    assert client.post(f"/orders/{order}/return/", sent).status_code == status
    assert not Return.objects.exists()


def test_choice_of_an_order_is_for_its_customer(client, order):
    query = {"units-sku-0": "1", "reason": "other", "wish": "other", "id_": str(uuid4())}
    address = f"/orders/{order}/exchange/"
    assert Client().get(address, query).status_code == 404
    assert client.get(address, query).status_code == 200
    for wrong in ({}, {**query, "units-sku-0": "9"}, {**query, "reason": "x"}):
        assert client.get(address, wrong).status_code == 303
