"""The address in the checkout, by its country, and where it goes: the letter, and the shipper."""

import pytest
from django.test import Client

from orchestration import submission
from orders.lifecycle.loading import load
from orders.models import Order
from tests.support.page import elements
from tests.support.shop import (
    fill_cart,
    open_checkout,
    order_in,
    order_page,
    posted,
    send,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelf")]
SPANISH = {"street": "Calle 1", "postcode": "28300", "city": "Aranjuez", "country": "ES"}


def names(html):
    """Return the names of the fields of an address, in their order."""
    shown = elements(html).only("#address").all("input") + elements(html).only("#address").all(
        "select"
    )
    return {field.attributes["name"] for field in shown}


def test_fields_follow_the_country():
    client = Client()
    ada = {"name": "Ada", "street": "Weg 1", "postcode": "T12", "city": "Cork"}
    irish = client.post(
        "/address/fields/", {**ada, "country": "IE"}, headers={"hx-request": "true"}
    )
    assert irish.status_code == 200
    assert "no-store" in irish["Cache-Control"]
    fields = elements(irish.text)
    assert fields.only("#id_city").attributes["value"] == "Cork"
    assert len(fields.only("#id_region").all("option")) == 27
    assert not fields.all("#id_country")  # it is what has the focus
    spanish = client.post("/address/fields/", {"country": "ES"})
    assert len(elements(spanish.text).only("#id_region").all("option")) == 53
    german = client.post("/address/fields/", {"country": "XX"})
    assert not elements(german.text).all('select[name="region"]')
    assert client.get("/address/fields/").status_code == 405


def test_region_goes_from_the_checkout_to_the_shipper():
    client = Client()
    fill_cart(client, sku_0=1)
    order = order_in(send(client, open_checkout(client), **SPANISH))
    (letter,) = posted("received")
    assert "28300 Aranjuez Madrid" in letter["text"]
    assert "28300 Aranjuez Madrid" in letter["html"]
    submission.take(100)
    assert Order.objects.get().region == "M"
    loaded = load([str(order)])[str(order)]["address"]
    assert loaded["region"] == "M"
    assert loaded["label"] == ["Ada Lovelace", "Calle 1", "28300 ARANJUEZ MADRID", "SPAIN"]
    assert "28300 Aranjuez Madrid" in order_page(client, order)


def test_order_without_a_postcode_where_there_need_be_none():
    client = Client()
    fill_cart(client, sku_0=1)
    irish = {"street": "Old Rectory", "postcode": "", "city": "Cork", "country": "IE"}
    order = order_in(send(client, open_checkout(client), **irish))
    submission.take(100)
    loaded = load([str(order)])[str(order)]["address"]
    assert "postcode" not in loaded
    assert loaded["label"] == ["Ada Lovelace", "Old Rectory", "CORK", "IRELAND"]


@pytest.mark.parametrize(
    "changes",
    [
        {"postcode": "1"},
        {"street": "S 1"},
        {"country": "DE"},  # its postcodes have five digits
        {"country": "IT", "postcode": "99999"},  # of no province
        {"country": "ES", "postcode": "28001", "region": "Lisboa"},
    ],
)
def test_checkout_refuses_what_its_country_does_not_have(changes):
    client = Client()
    fill_cart(client, sku_0=1)
    answer = send(client, open_checkout(client), **changes)
    assert answer.status_code == 422
    assert not Order.objects.exists()
    assert elements(answer.text).all('[aria-invalid="true"]')


def test_checkout_of_a_country_with_regions_offers_them_after_an_error():
    client = Client()
    fill_cart(client, sku_0=1)
    html = send(client, open_checkout(client), **SPANISH, name="").text
    assert elements(html).only("#id_region").tag == "select"
