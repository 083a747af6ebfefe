"""Prices from a date on: shown as soon as they are due, without any job."""

from datetime import timedelta

import pytest
from django.utils import timezone

from orders.models import DatedPrice, Placement, Product
from tests.support.form import fields_of
from tests.support.operators import browser, person
from tests.support.page import page
from tests.support.shop import buy, carry_out, fill_cart, open_checkout, send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelf")]


def price(amount, hours, sku="sku-0", **values):
    """Give a product a price that began, or begins, this number of hours from now."""
    at = timezone.now() + timedelta(hours=hours)
    return DatedPrice.objects.create(product_id=sku, starts_at=at, price=amount, **values)


def due(sku="sku-0"):
    return Product.objects.get(sku=sku).due


def test_price_is_the_one_that_began_last():
    assert due() == 1000
    price(1200, 1)
    assert due() == 1000
    price(900, -2)
    assert due() == 900
    price(800, -1)
    assert due() == 800
    assert due("sku-1") == 1100


def test_price_begins_at_its_moment():
    """It is moved past its moment, as time does."""
    row = price(700, 1)
    assert due() == 1000
    DatedPrice.objects.filter(pk=row.pk).update(starts_at=timezone.now() - timedelta(seconds=1))
    assert due() == 700


def test_price_in_another_currency_is_not_due():
    price(700, -1, currency="USD")
    assert due() == 1000


def test_pages_show_the_price_that_is_due(client):
    price(777, -1)
    assert "€7.77" in client.get("/").text
    assert "€7.77" in client.get("/products/slug-0/").text
    fill_cart(client, sku_0=1)
    assert "€7.77" in client.get("/cart/").text
    order = buy(client)
    carry_out()
    assert Placement.objects.get().order == order


def test_filter_goes_by_the_price_that_is_due(client):
    price(3500, -1)
    assert "Product 0" in client.get("/?price=over-30").text
    assert "Product 0" not in client.get("/?price=10-to-30").text


def test_price_that_begins_during_the_checkout_is_asked_about(client):
    fill_cart(client, sku_0=1)
    token = open_checkout(client)
    price(900, -1)
    assert send(client, token).status_code == 422
    assert 'data-changed="sku-0"' in client.get("/cart/").text


def test_grid_costs_the_same_with_many_prices(client, django_assert_num_queries):
    for hours in range(-20, 20):
        price(1000 + hours, hours)
        price(2000 + hours, hours, "sku-1")
    client.get("/")
    with django_assert_num_queries(3):  # the visitor, the shelves, the products
        client.get("/")


def test_owner_adds_and_deletes_a_price_at_the_product():
    owner = browser(person("boss", is_staff=True, is_superuser=True))
    address = "/admin/orders/product/sku-0/change/"

    def form():
        forms = page(owner.get(address)).all('form[method="post"]')
        return fields_of(next(form for form in forms if form.attributes.get("id") != "logout-form"))

    new = {"dated_prices-2-0-starts_at_0": "2020-01-01", "dated_prices-2-0-starts_at_1": "00:00:00"}
    assert owner.post(address, {**form(), **new, "dated_prices-2-0-price": "0"}).status_code == 200
    assert due() == 1000
    added = owner.post(address, {**form(), **new, "dated_prices-2-0-price": "8.50"})
    assert added.status_code == 302, added.text
    assert due() == 850
    assert "€8.50" in owner.get(address).text
    row = DatedPrice.objects.get()
    again = owner.post(address, {**form(), **new, "dated_prices-2-0-price": "9"})
    assert again.status_code == 200  # another price from the same moment on
    assert owner.post(address, {**form(), "dated_prices-0-DELETE": "on"}).status_code == 302
    assert not DatedPrice.objects.filter(pk=row.pk).exists()


def test_each_input_of_a_moment_has_a_name():
    owner = browser(person("boss", is_staff=True, is_superuser=True))
    product = Product.objects.first()
    pages = [f"/admin/orders/product/{product.pk}/change/", "/admin/orders/discountcode/add/"]
    inputs = [field for address in pages for field in page(owner.get(address)).all("input")]
    moments = [
        field
        for field in inputs
        if field.attributes.get("class") in {"vDateField", "vTimeField"}
        and field.attributes["name"] != "released_on"  # a day is one input, which its label is for
    ]
    assert len(moments) == 8  # one is the template of further ones
    assert all(field.attributes.get("aria-label") for field in moments)
