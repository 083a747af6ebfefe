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
    assert "Your cart is empty" in client.get("/cart/").content.decode()
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
