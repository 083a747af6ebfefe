"""A shop in a currency with 0, 2 or 3 digits: the same amount on every page, in letters and by the API."""

import pytest
from django.test import Client

from orchestration.models import Task
from orders.models import Order, Product
from tests.support.applications import Caller, application, new_order
from tests.support.form import fields_of
from tests.support.operators import browser, person
from tests.support.page import page
from tests.support.shop import (
    answer,
    ask,
    carry_out,
    declined,
    fill_cart,
    open_checkout,
    order_in,
    order_page,
    posted,
    products,
    send,
)

pytestmark = pytest.mark.django_db
SHOWN = {"EUR": "€20.00", "JPY": "¥2,000", "KWD": "KWD 2.000"}


@pytest.fixture(params=SHOWN)
def shown(request, settings):
    """The shop's total of two of sku-0, in words."""
    settings.CURRENCY = request.param
    products()
    return SHOWN[request.param]


def test_order_in_the_shops_currency(shown, settings, client):
    fill_cart(client, sku_0=2)
    assert shown in client.get("/cart/").text
    assert shown in client.get("/checkout/").text
    order = order_in(send(client, open_checkout(client)))
    carry_out()
    sent = ask()["authorize_payment"].payload
    assert (sent["amount"], sent["currency"]) == (2000, settings.CURRENCY)
    assert shown in order_page(client, order)
    letter = Task.objects.get(reference=str(order)).data["confirmation"]
    assert all(shown in text for text in (letter["text"], posted("received")[0]["text"]))
    admin = browser(person("ann", is_staff=True, is_superuser=True))
    for path in ("", f"{order}/change/"):
        assert shown in admin.get(f"/admin/orders/order/{path}").text


def test_declined_order_offers_to_pay_in_its_currency(shown, client):
    assert f"Pay {shown} with this card" in order_page(client, declined(client))


def test_api_in_the_shops_currency(shown, settings):
    till = Caller(application()[1])
    products = till.get("products").json()["products"]
    assert {product["currency"] for product in products} == {settings.CURRENCY}
    order = till.place(order=new_order(expected_total=2000)).json()
    assert (order["total"], order["currency"]) == (2000, settings.CURRENCY)


def test_product_in_another_currency_is_not_sold_until_its_price_is_saved(settings):
    settings.CURRENCY = "EUR"
    products(1)
    settings.CURRENCY = "JPY"
    assert "Product 0" not in Client().get("/").text
    assert Caller(application()[1]).place().status_code == 409
    admin = browser(person("ann", is_staff=True, is_superuser=True))
    address = "/admin/orders/product/sku-0/change/"
    forms = page(admin.get(address)).all('form[method="post"]')
    fields = fields_of(next(form for form in forms if form.attributes["id"] == "product_form"))
    assert fields["price"] == ["1000"]
    assert admin.post(address, {**fields, "price": "1500"}).status_code == 302
    row = Product.objects.get()
    assert (row.price, row.currency) == (1500, "JPY")
    assert "¥1,500" in Client().get("/").text


def test_admin_takes_prices_as_people_write_them(settings):
    products(1)
    admin = browser(person("ann", is_staff=True, is_superuser=True))
    address = "/admin/orders/product/sku-0/change/"
    forms = page(admin.get(address)).all('form[method="post"]')
    fields = fields_of(next(form for form in forms if form.attributes["id"] == "product_form"))
    assert fields["price"] == ["10.00"]
    for typed in ("12.505", "0", "10000.01", "-1"):
        assert admin.post(address, {**fields, "price": typed}).status_code == 200
    assert admin.post(address, {**fields, "price": "12.5"}).status_code == 302
    assert Product.objects.get().price == 1250


def test_order_keeps_its_currency(settings, client):
    products()
    declined_order = declined(client)
    settings.CURRENCY = "JPY"
    assert "€20.00" in order_page(client, declined_order)
    assert (
        client.post(
            f"/orders/{declined_order}/card/", {"attempt": 1, "payment_method": "pm_card_visa"}
        ).status_code
        == 303
    )
    carry_out()
    assert ask()["authorize_payment"].payload["currency"] == "EUR"
    answer({})
    assert Order.objects.get().currency == "EUR"
