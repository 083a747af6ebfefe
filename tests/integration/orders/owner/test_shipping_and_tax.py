"""Shipping and tax by the country of delivery: shown before they are charged, and charged as shown."""

import pytest
from django.test import Client

from orchestration import api, submission
from orchestration.models import Submission, Task
from orders.lifecycle import placement
from orders.lifecycle.changes import permit
from orders.models import Order, Placement, Product, ShippingPrice, TaxRate
from orders.shop.tariff import tariff
from tests.support.page import elements
from tests.support.shop import (
    answer,
    ask,
    buy,
    carry_out,
    fill_cart,
    message,
    open_checkout,
    order_in,
    order_page,
    posted,
    send,
    token_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelf", "rates")]
BERLIN = {"street": "Kastanienallee 1", "postcode": "10435", "city": "Berlin", "country": "DE"}


@pytest.fixture
def prices():
    """Delivery to Germany for 4.90, free from 50.00 on; elsewhere for 9.90."""
    ShippingPrice.objects.create(country="DE", price=490, free_from=5000)
    ShippingPrice.objects.create(price=990)


def shown(html):
    """Return the amounts of a page's sums by their kind."""
    return {
        row.attributes["data-sum"]: row.only("dd").text for row in elements(html).all("[data-sum]")
    }


def test_tariff_of_a_country_or_of_all_others(prices, django_assert_num_queries):
    with django_assert_num_queries(1):
        german = tariff("DE")
    assert (german.shipping, german.free_from) == (490, 5000)
    assert german.rates == {"standard": 1900, "reduced": 700}
    assert (tariff("CH").shipping, tariff("CH").rates) == (990, {})


def test_tariff_in_another_currency_is_not_used(prices):
    ShippingPrice.objects.filter(country="DE").update(currency="USD")
    assert tariff("DE").shipping == 990


def test_tariff_without_a_row_is_free():
    assert tariff("DE").shipping == 0


@pytest.mark.parametrize(
    "country", ["AT", "BE", "DE", "DK", "ES", "FI", "FR", "IE", "IT", "LU", "NL", "PL", "PT", "SE"]
)
def test_each_country_of_the_union_has_both_rates(country):
    rates = dict(TaxRate.objects.filter(country=country).values_list("tax_class", "percent"))
    assert set(rates) == {"standard", "reduced"}
    assert 1500 <= rates["standard"] <= 2700  # the bounds of EU law, and the highest that there is
    assert rates["reduced"] <= rates["standard"]


def test_cart_shows_shipping_and_tax(client, prices):
    Product.objects.filter(sku="sku-1").update(tax_class="reduced")
    fill_cart(client, sku_0=1, sku_1=1)
    page = client.get("/cart/").text
    sums = shown(page)
    assert (sums["subtotal"], sums["shipping"], sums["total"]) == ("€21.00", "€4.90", "€25.90")
    taxes = [row.only("dd").text for row in elements(page).all('[data-sum="tax"]')]
    # 10.00 and 11.00 share the 4.90: 12.33 at 19 %, 13.57 at 7 %
    assert taxes == ["€1.97", "€0.89"]


def test_shipping_is_free_from_its_price_on(client, prices):
    fill_cart(client, sku_0=5)
    sums = shown(client.get("/cart/").text)
    assert (sums["shipping"], sums["total"]) == ("free", "€50.00")


def test_order_has_the_charges_that_were_shown(client, prices):
    fill_cart(client, sku_0=2)
    response = send(client, open_checkout(client), **BERLIN)
    order = order_in(response)
    carry_out()
    row = Order.objects.get(id=order)
    assert row.total == 2490
    assert row.charges["taxes"] == [{"rate": 1900, "net": 2092, "tax": 398}]
    task = Task.objects.get(reference=str(order))
    assert (task.data["total"], task.data["charges"]["shipping"]) == (2490, 490)
    assert ask()["authorize_payment"].payload["amount"] == 2490
    sums = shown(order_page(client, order))
    assert (sums["shipping"], sums["total"], sums["tax"]) == ("€4.90", "€24.90", "€3.98")


def test_country_that_changes_the_total_is_asked_about(client, prices):
    fill_cart(client, sku_0=2)
    token = open_checkout(client)  # with delivery to Germany
    again = send(client, token)  # to Switzerland
    assert again.status_code == 422
    assert not Placement.objects.exists()
    assert shown(again.text)["total"] == "€29.90"
    assert send(client, token_of(again)).status_code == 303
    assert Submission.objects.get(workflow="process_order").data["total"] == 2990


def test_country_with_the_same_total_is_not_asked_about(client):
    fill_cart(client, sku_0=2)
    assert send(client, open_checkout(client), **BERLIN).status_code == 303


def test_price_of_shipping_that_changes_meanwhile_is_asked_about(client, prices):
    fill_cart(client, sku_0=2)
    token = open_checkout(client)
    ShippingPrice.objects.filter(country="DE").update(price=590)
    assert send(client, token, **BERLIN).status_code == 422
    assert not Placement.objects.exists()


@pytest.mark.parametrize(("changed", "fields"), [("country", 1), ("discount_code", 0)])
def test_fields_of_the_address_come_with_another_country_only(client, changed, fields):
    fill_cart(client, sku_0=2)
    headers = {"HX-Request": "true", "HX-Trigger-Name": changed}
    part = client.post("/checkout/sums/", {"country": "CH"}, headers=headers)
    assert len(elements(part.text).all("#address")) == fields


def test_choosing_a_country_shows_its_sums_with_a_token_for_them(client, prices):
    fill_cart(client, sku_0=2)
    open_checkout(client)
    form = {"country": "CH", "name": "Ada"}
    part = client.post("/checkout/sums/", form, headers={"HX-Request": "true"})
    assert shown(part.text)["total"] == "€29.90"
    assert elements(part.text).only("#place").text.endswith("€29.90")
    assert send(client, token_of(part)).status_code == 303


def test_sums_of_an_empty_cart_are_fields_only(client):
    part = client.post("/checkout/sums/", {"country": "CH"}, headers={"HX-Request": "true"})
    assert part.status_code == 200
    assert not elements(part.text).all("#sums")


def test_checkout_page_query_count(client, prices, django_assert_num_queries):
    fill_cart(client, sku_0=1, sku_1=1)
    with django_assert_num_queries(3):  # the session, the products, shipping and tax
        client.get("/checkout/")


def test_letters_name_shipping_and_tax(client, prices):
    fill_cart(client, sku_0=2)
    send(client, open_checkout(client), **BERLIN)
    (letter,) = posted("received")
    confirmation = Submission.objects.get(workflow="process_order").data["confirmation"]
    for mail in (letter, confirmation):
        for text in (mail["text"], mail["html"]):
            assert "€24.90" in text
            assert "€4.90" in text
            assert "19% VAT on €20.92: €3.98" in text


def test_letters_are_german_for_germans(client, prices):
    client.cookies["django_language"] = "de"
    fill_cart(client, sku_0=2)
    send(client, open_checkout(client), **BERLIN)
    (letter,) = posted("received")
    assert "Versand: " in letter["text"]
    assert "enthält 19% MwSt. auf" in letter["text"]


def test_left_out_product_takes_its_tax_along(client, prices):
    Product.objects.filter(sku="sku-1").update(tax_class="reduced")
    fill_cart(client, sku_0=2, sku_1=1)
    order = order_in(send(client, open_checkout(client), **BERLIN))
    carry_out()
    answer(ask(), reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand")
    left = {"attempt": "1", "sku": "sku-1"}
    assert client.post(f"/orders/{order}/leave-out/", left).status_code == 303
    carry_out()
    row = Order.objects.get(id=order)
    assert (row.total, row.charges["shipping"]) == (2490, 490)
    assert row.charges["rates"] == {"sku-0": 1900}
    data = Task.objects.get(reference=str(order)).data
    assert (data["total"], data["charges"]) == (2490, row.charges)
    assert "€24.90" in data["confirmation"]["text"]


def test_left_out_product_of_an_order_without_other_tax(client):
    Product.objects.filter(sku="sku-0").update(tax_class="zero")
    order = sold_out_in_berlin(client)
    assert (
        client.post(f"/orders/{order}/leave-out/", {"attempt": "1", "sku": "sku-1"}).status_code
        == 303
    )
    carry_out()
    row = Order.objects.get(id=order)
    assert (row.total, row.charges) == (2000, None)
    assert shown(order_page(client, order)).get("tax") is None


def sold_out_in_berlin(client):
    fill_cart(client, sku_0=2, sku_1=1)
    order = order_in(send(client, open_checkout(client), **BERLIN))
    carry_out()
    answer(ask(), reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand")
    return order


def test_change_of_the_charges_that_no_page_offers_is_refused(client, prices):
    """An amendment may not take more off than the customer agreed to."""
    order = sold_out_in_berlin(client)
    data = Task.objects.get(reference=str(order)).data
    lines = data["lines"][:1]
    words = data["confirmation"]
    asked = api.AskedChange(
        reference=str(order), step="reserve_stock", request={"lines": lines}, task_data=data,
        data={"lines": lines, "total": 1000, "confirmation": words},
        note={"act": "leave_out", "sku": "sku-1", "total": 1000},
    )  # fmt: skip
    with pytest.raises(api.Refused):
        permit(asked)


def test_message_of_the_former_release_is_an_order_without_charges():
    sent = message()
    placement.place(sent, "x" * 64)
    submission.take(100)
    assert Order.objects.get(id=sent.order).charges is None


def test_order_of_the_former_release_is_shown(client):
    order = buy(client)
    carry_out()
    sums = shown(order_page(client, order))
    assert (sums["subtotal"], sums["total"]) == ("€20.00", "€20.00")


def test_two_visitors_of_two_countries(prices):
    """What one visitor chose shows nothing to another."""
    chooser, other = Client(), Client()
    for client in (chooser, other):
        fill_cart(client, sku_0=2)
    chooser.post("/checkout/sums/", {"country": "CH"}, headers={"HX-Request": "true"})
    assert shown(other.get("/checkout/").text)["total"] == "€24.90"
