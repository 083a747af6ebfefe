"""The cart: changes with and without htmx, limits, undo, and changed products."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from orders import visitors
from orders.models import Product, Visitor
from orders.rate_limit import Limit
from sasweb.accounts.adapter import BACKEND
from tests.support.page import elements
from tests.support.shop import fill_cart

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelf")]
HTMX = {"HTTP_HX_REQUEST": "true"}
UNDO = 'action="/cart/undo/"'  # the form that undoes a removal


def quantities(client):
    return content(client).get("cart", {}).get("quantities", {})


def content(client):
    if "visitor" not in client.cookies:
        return {}
    row = Visitor.objects.filter(key=client.cookies["visitor"].value).first()
    return row.content if row else {}


def test_cart_change_without_javascript(client):
    response = client.post(
        "/cart/add/", {"sku": "sku-0", "quantity": "2", "next": "/products/slug-0/"}
    )
    assert (response.status_code, response["Location"]) == (303, "/products/slug-0/")
    assert 'class="strip success"' in client.get("/").text
    response = client.post("/cart/change/", {"sku": "sku-0", "quantity": "5"})
    assert (response.status_code, response["Location"]) == (303, "/cart/")
    assert "€50.00" in client.get("/cart/").text
    client.post("/cart/change/", {"sku": "sku-0", "remove": "1", "quantity": "5"})
    assert quantities(client) == {}


def test_cart_change_with_htmx(client):
    response = client.post("/cart/add/", {"sku": "sku-0"}, **HTMX)
    page = response.text
    assert 'class="strip toast success"' in page
    assert 'hx-swap-oob="true"' in page
    assert "<html" not in page
    assert "HX-Request" in response["Vary"]
    page = client.post("/cart/change/", {"sku": "sku-0", "quantity": "3"}, **HTMX).text
    assert "€30.00" in page
    assert "<html" not in page


@pytest.mark.parametrize("quantity", ["-1", "100", "abc", "1.5", "", "9" * 400, "1\0"])
def test_cart_change_with_an_impossible_quantity(client, quantity):
    fill_cart(client, sku_0=2)
    for path in ("/cart/add/", "/cart/change/"):
        data = {"sku": "sku-0", "quantity": quantity}
        assert client.post(path, data, **HTMX).status_code == 422
        assert client.post(path, data).status_code == 303
        assert 'class="strip error"' in client.get("/cart/").text
    assert quantities(client) == {"sku-0": 2}


@pytest.mark.parametrize("sku", ["", "nothing", "sku-0\0", "x" * 5000])
def test_cart_addition_of_an_unknown_product(client, sku):
    response = client.post("/cart/add/", {"sku": sku}, **HTMX)
    assert response.status_code == 422 or quantities(client) == {"sku-0": 1}
    assert set(quantities(client)) <= {"sku-0"}


def test_cart_addition_of_an_inactive_product(client):
    fill_cart(client, sku_0=1)
    Product.objects.filter(sku="sku-0").update(active=False)
    assert client.post("/cart/add/", {"sku": "sku-0"}, **HTMX).status_code == 422
    page = client.get("/cart/").text
    assert 'class="empty"' in page
    assert 'data-gone="sku-0"' in page
    assert client.get("/products/slug-0/").status_code == 404


def test_cart_addition_redirects_only_within_the_shop(client):
    for address in ("https://evil.example/", "//evil.example/", "javascript:alert(1)", "\\\\evil"):
        response = client.post("/cart/add/", {"sku": "sku-0", "next": address})
        assert response["Location"] == "/cart/"


def test_cart_change_needs_post_and_a_csrf_token(client):
    assert client.get("/cart/add/").status_code == 405
    assert client.get("/cart/change/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/cart/add/", {"sku": "sku-0"}).status_code == 403


def test_cart_page_query_count(client, django_assert_num_queries):
    fill_cart(client, sku_0=1, sku_1=1)
    with django_assert_num_queries(3):  # the session, the products, shipping and tax
        client.get("/cart/")


def test_cart_is_per_session(client):
    fill_cart(client, sku_0=1)
    assert quantities(Client()) == {}


def test_cart_undo_of_a_removal(client):
    fill_cart(client, sku_0=3, sku_1=1)
    client.post("/cart/change/", {"sku": "sku-0", "remove": "1"})
    page = client.get("/cart/").text
    assert UNDO in page
    assert client.post("/cart/undo/")["Location"] == "/cart/"
    assert quantities(client) == {"sku-0": 3, "sku-1": 1}
    client.post("/cart/undo/")  # a second click
    assert 'class="strip error"' in client.get("/cart/").text
    assert quantities(client) == {"sku-0": 3, "sku-1": 1}
    client.post("/cart/change/", {"sku": "sku-0", "quantity": "0"})
    fill_cart(client, sku_2=1)
    assert UNDO not in client.get("/cart/").text


def test_cart_undo_of_the_last_item(client):
    fill_cart(client, sku_0=3)
    page = client.post("/cart/change/", {"sku": "sku-0", "remove": "1"}, **HTMX).text
    assert 'class="empty"' in page
    page = client.post("/cart/undo/", **HTMX).text
    assert "€30.00" in page
    assert UNDO not in page


@pytest.mark.parametrize("path", ["/cart/", "/checkout/"])
def test_cart_with_a_changed_price(client, path):
    fill_cart(client, sku_0=2, sku_1=1)
    Product.objects.filter(sku="sku-0").update(price=1250)
    page = client.get(path).text
    (notice,) = elements(page).all("[data-changed]")
    assert notice["data-changed"] == "sku-0"
    (line,) = [note for note in elements(page).texts("span.note") if "€10.00" in note]
    for words in (notice.text, line):
        assert words.index("€12.50") < words.index("€10.00")
    client.post("/cart/change/", {"sku": "sku-0", "quantity": "1"})  # seen and accepted
    assert "data-changed" not in client.get(path).text


def test_cart_with_an_inactive_product(client):
    fill_cart(client, sku_0=1, sku_1=1)
    Product.objects.filter(sku="sku-0").update(active=False)
    for path in ("/cart/", "/checkout/"):
        page = client.get(path).text
        assert 'data-gone="sku-0"' in page
        assert "€11.00" in page
    client.post("/cart/change/", {"sku": "sku-0", "remove": "1"})
    page = client.get("/cart/").text
    assert "data-gone" not in page
    assert UNDO not in page


def test_cart_without_stored_prices(client):
    fill_cart(client, sku_0=1)
    cart = {"id": str(uuid4()), "quantities": {"sku-0": 1}}
    Visitor.objects.update(content={"cart": cart})
    assert "€10.00" in client.get("/cart/").text


def test_cart_of_the_former_release_moves_out_of_the_session(client):
    session = client.session
    session["cart"] = {"id": str(uuid4()), "quantities": {"sku-0": 1}, "seen": {"sku-0": 1000}}
    session.save()
    assert "€10.00" in client.get("/cart/").text
    fill_cart(client, sku_0=1)
    assert quantities(client) == {"sku-0": 2}
    assert "cart" not in client.session


def test_strangers_without_cookies_begin_a_bounded_number_of_rows(monkeypatch):
    monkeypatch.setattr(visitors, "NEW", Limit("visitor", most=3, seconds=600))
    answers = [Client().post("/cart/add/", {"sku": "sku-0"}, **HTMX) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 3
    assert (Visitor.objects.count(), Session.objects.count()) == (3, 0)


def test_page_gives_the_cookie_and_makes_no_row(client):
    client.get("/")
    assert client.cookies["visitor"]["httponly"]
    assert Visitor.objects.count() == 0


def test_cart_goes_with_the_one_who_signs_out(client):
    client.force_login(User.objects.create_user("ada"), BACKEND)
    fill_cart(client, sku_0=1)
    client.post("/logout/")
    assert quantities(client) == {}
    assert 'class="empty"' in client.get("/cart/").text
