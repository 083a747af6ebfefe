"""The cart: with and without htmx, within bounds."""

import pytest
from django.test import Client

from orders.models import Product
from tests.shop import fill_cart, products

pytestmark = pytest.mark.django_db
HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture(autouse=True)
def _shelf(db):
    products()


def kept(client):
    return client.session.get("cart", {}).get("quantities", {})


def test_without_javascript_each_change_comes_back_to_a_page(client):
    response = client.post(
        "/cart/add/", {"sku": "sku-0", "quantity": "2", "next": "/products/slug-0/"}
    )
    assert (response.status_code, response["Location"]) == (303, "/products/slug-0/")
    assert "Product 0 is in your cart" in client.get("/").content.decode()
    response = client.post("/cart/change/", {"sku": "sku-0", "quantity": "5"})
    assert (response.status_code, response["Location"]) == (303, "/cart/")
    assert "€50.00" in client.get("/cart/").content.decode()
    client.post("/cart/change/", {"sku": "sku-0", "remove": "1", "quantity": "5"})
    assert kept(client) == {}


def test_with_htmx_only_the_changed_part_comes_back(client):
    response = client.post("/cart/add/", {"sku": "sku-0"}, **HTMX)
    page = response.content.decode()
    assert "is in your cart" in page
    assert 'hx-swap-oob="true"' in page
    assert "<html" not in page
    assert "HX-Request" in response["Vary"]
    page = client.post("/cart/change/", {"sku": "sku-0", "quantity": "3"}, **HTMX).content.decode()
    assert "€30.00" in page
    assert "<html" not in page


@pytest.mark.parametrize("quantity", ["-1", "100", "abc", "1.5", "", "9" * 400, "1\0"])
def test_impossible_quantities_change_nothing(client, quantity):
    fill_cart(client, sku_0=2)
    for path in ("/cart/add/", "/cart/change/"):
        data = {"sku": "sku-0", "quantity": quantity}
        assert client.post(path, data, **HTMX).status_code == 422
        assert client.post(path, data).status_code == 303
        assert 'class="strip error"' in client.get("/cart/").content.decode()
    assert kept(client) == {"sku-0": 2}


@pytest.mark.parametrize("sku", ["", "nothing", "sku-0\0", "x" * 5000])
def test_unknown_products_are_not_put_in(client, sku):
    response = client.post("/cart/add/", {"sku": sku}, **HTMX)
    assert response.status_code == 422 or kept(client) == {"sku-0": 1}
    assert set(kept(client)) <= {"sku-0"}


def test_inactive_products_are_not_put_in_and_not_shown(client):
    fill_cart(client, sku_0=1)
    Product.objects.filter(sku="sku-0").update(active=False)
    assert client.post("/cart/add/", {"sku": "sku-0"}, **HTMX).status_code == 422
    page = client.get("/cart/").content.decode()
    assert "Your cart is empty" in page
    assert "Product 0 is not sold any more" in page
    assert client.get("/products/slug-0/").status_code == 404


def test_it_leads_nowhere_else(client):
    for address in ("https://evil.example/", "//evil.example/", "javascript:alert(1)", "\\\\evil"):
        response = client.post("/cart/add/", {"sku": "sku-0", "next": address})
        assert response["Location"] == "/cart/"


def test_get_changes_nothing_and_csrf_is_needed(client):
    assert client.get("/cart/add/").status_code == 405
    assert client.get("/cart/change/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/cart/add/", {"sku": "sku-0"}).status_code == 403


def test_looking_at_a_cart_does_not_write(client, django_assert_num_queries):
    fill_cart(client, sku_0=1, sku_1=1)
    with django_assert_num_queries(2):  # the session, the products
        client.get("/cart/")


def test_a_foreign_session_has_its_own_cart(client):
    fill_cart(client, sku_0=1)
    assert kept(Client()) == {}


def test_a_removal_can_be_undone_until_something_else_changes(client):
    fill_cart(client, sku_0=3, sku_1=1)
    client.post("/cart/change/", {"sku": "sku-0", "remove": "1"})
    page = client.get("/cart/").content.decode()
    assert "Product 0 is no longer in your cart" in page
    assert "Put it back" in page
    assert client.post("/cart/undo/")["Location"] == "/cart/"
    assert kept(client) == {"sku-0": 3, "sku-1": 1}
    client.post("/cart/undo/")  # a second click
    assert "There is nothing to put back" in client.get("/cart/").content.decode()
    assert kept(client) == {"sku-0": 3, "sku-1": 1}
    client.post("/cart/change/", {"sku": "sku-0", "quantity": "0"})
    fill_cart(client, sku_2=1)
    assert "Put it back" not in client.get("/cart/").content.decode()


def test_the_last_piece_can_be_put_back_too(client):
    fill_cart(client, sku_0=3)
    page = client.post("/cart/change/", {"sku": "sku-0", "remove": "1"}, **HTMX).content.decode()
    assert "Your cart is empty" in page
    page = client.post("/cart/undo/", **HTMX).content.decode()
    assert "€30.00" in page
    assert "Put it back" not in page


@pytest.mark.parametrize("path", ["/cart/", "/checkout/"])
def test_a_price_that_changed_since_is_pointed_out(client, path):
    fill_cart(client, sku_0=2, sku_1=1)
    Product.objects.filter(sku="sku-0").update(price=1250)
    page = client.get(path).content.decode()
    assert "A price has changed since you filled your cart" in page
    assert "now €12.50, was €10.00" in page
    assert "now €12.50 each, was €10.00" in page
    assert "was €11.00" not in page
    client.post("/cart/change/", {"sku": "sku-0", "quantity": "1"})  # seen and accepted
    assert "was €10.00" not in client.get(path).content.decode()


def test_what_is_not_sold_any_more_is_named_and_can_be_removed(client):
    fill_cart(client, sku_0=1, sku_1=1)
    Product.objects.filter(sku="sku-0").update(active=False)
    for path in ("/cart/", "/checkout/"):
        page = client.get(path).content.decode()
        assert "Product 0 is not sold any more, and not part of your order" in page
        assert "€11.00" in page
    client.post("/cart/change/", {"sku": "sku-0", "remove": "1"})
    page = client.get("/cart/").content.decode()
    assert "not sold any more" not in page
    assert "Put it back" not in page


def test_a_cart_from_before_prices_were_kept_is_read(client):
    fill_cart(client, sku_0=1)
    session = client.session
    session["cart"] = {"id": session["cart"]["id"], "quantities": {"sku-0": 1}}
    session.save()
    assert "€10.00" in client.get("/cart/").content.decode()
