"""What is refused says so in the dress of its address, with the way back."""

import pytest
from django.template.loader import render_to_string
from django.test import Client

from tests.support.operators import browser, person
from tests.support.page import POLL, elements, page
from tests.support.shop import products

pytestmark = pytest.mark.django_db
SHOP, OPS = "Kettlewell", "Operations"


@pytest.fixture
def boss():
    client = browser(person("boss", is_staff=True, is_superuser=True))
    client.raise_request_exception = False
    return client


def dress(response):
    return page(response).only("a.brand").text


def back(response):
    return [link["href"] for link in page(response).all("[data-back]")]


@pytest.mark.parametrize(
    ("address", "above", "brand"),
    [
        ("/ops/operations/new/", "/ops/operations/", OPS),
        ("/ops/incidents/7/note/", "/ops/incidents/7/", OPS),
        ("/ops/alerts/7/acknowledge/", "/ops/", OPS),
        ("/ops/views/", "/ops/", OPS),
        ("/cart/add/", "/cart/", SHOP),
        ("/orders/00000000-0000-0000-0000-000000000000/cancel/", None, SHOP),
        ("/logout/", "/", SHOP),
    ],
)
def test_address_of_a_form_that_is_opened_says_what_to_do(boss, address, above, brand):
    answer = boss.get(address, headers={"Referer": "http://testserver/ops/tasks/?q=x"})
    assert (answer.status_code, answer["Allow"].partition(",")[0]) == (405, "POST")
    assert page(answer).only('[data-refused="method"]')
    assert dress(answer) == brand
    assert back(answer) == ["/ops/tasks/?q=x"]
    to = page(answer).only("[data-above]")["href"]
    assert to == (above or address.removesuffix("cancel/"))
    assert boss.head(address).content == b""


def test_programs_get_no_page_for_a_wrong_method(boss):
    assert boss.get("/ops/operations/new/", headers=POLL).content == b""
    assert boss.delete("/ops/").content == b""
    assert Client().delete("/api/orders")["Content-Type"] != "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("address", "brand"),
    [
        ("/ops/tasks/00000000-0000-0000-0000-000000000000/", OPS),
        ("/ops/incidents/99999/", OPS),
        ("/admin/nothing/", OPS),
        ("/login/nothing/", OPS),
        ("/nothing/", SHOP),
        ("/products/nothing/", SHOP),
    ],
)
def test_unknown_address_is_in_its_dress_with_the_way_back(boss, address, brand):
    answer = boss.get(address, headers={"Referer": "http://testserver/ops/incidents/"})
    assert (answer.status_code, dress(answer)) == (404, brand)
    assert back(answer) == ["/ops/incidents/"]
    assert ('href="/admin/"' in answer.text) is address.startswith("/admin/")


@pytest.mark.parametrize(
    "before",
    ["https://evil.example/x", "http://testserver.evil.example/", "http://testserver//evil.example/",
     "javascript:alert(1)", "", "http://testserver/ops/nothing/"],
)  # fmt: skip
def test_way_back_leads_to_no_other_site_and_not_to_the_same_page(boss, before):
    answer = boss.get("/ops/nothing/", headers={"Referer": before})
    assert answer.status_code == 404
    assert back(answer) == []


def test_refused_permission_in_the_admin_is_in_the_dashboards_dress():
    ada = browser(person("ada", is_staff=True))
    answer = ada.get("/admin/auth/user/")
    assert (answer.status_code, dress(answer)) == (403, OPS)
    assert "ada" in page(answer).only('[data-refused="permission"]').text


@pytest.mark.parametrize(
    ("address", "brand"),
    [("/ops/operations/new/", OPS), ("/admin/auth/group/add/", OPS), ("/login/", OPS),
     ("/account/sign-in/", SHOP), ("/checkout/", SHOP)],
)  # fmt: skip
def test_form_without_a_token_is_refused_in_its_dress(address, brand):
    client = Client(enforce_csrf_checks=True)
    client.force_login(
        person("boss", is_staff=True, is_superuser=True),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    answer = client.post(address, {"username": "boss"})
    assert (answer.status_code, dress(answer)) == (403, brand)


@pytest.mark.parametrize(("address", "brand"), [("/ops/", OPS), ("/admin/", OPS), ("/", SHOP)])
def test_malformed_request_is_refused_in_its_dress(address, brand):
    answer = Client().get(address, headers={"Host": "evil.example"})
    assert (answer.status_code, dress(answer)) == (400, brand)


@pytest.mark.parametrize(("address", "brand"), [("/ops/", OPS), ("/admin/", OPS)])
def test_page_that_fails_is_in_its_dress(boss, address, brand, monkeypatch):
    def fail(*_args, **_kwargs):
        raise RuntimeError

    monkeypatch.setattr("orchestration.console.queries.health.shell", fail)
    monkeypatch.setattr("sasweb.back_office.BackOffice.get_app_list", fail)
    answer = boss.get(address)
    assert (answer.status_code, dress(answer)) == (500, brand)


@pytest.mark.parametrize(("letters", "agent"), [(151, "x"), (100_000, "x"), (3, "x" * 1_000)])
def test_login_with_anything_too_long_is_wrong_as_any_other(letters, agent):
    form_data = {"username": "a" * letters, "password": "y"}
    answer = Client(headers={"User-Agent": agent}).post("/login/", form_data)
    assert answer.status_code == 200
    assert page(answer).only(".errors")


def test_login_of_staff_is_in_the_dashboards_dress_also_for_the_admin():
    answer = Client().get("/admin/auth/user/", follow=True)
    assert answer.request["PATH_INFO"] == "/login/"
    assert dress(answer) == OPS
    wrong = Client().post("/login/", {"username": "x", "password": "y"})
    assert dress(wrong) == OPS


@pytest.mark.parametrize("address", ["/nowhere/", "/cart/add/", "/products/nowhere/"])
def test_error_page_of_the_shop_has_its_menu(client, address):
    menu = page(client.get(address)).only("nav.nav").all("a")
    assert [link["href"] for link in menu] == ["/", "/orders/find/", "/account/", "/cart/"]


@pytest.mark.parametrize(
    "template", ["400.html", "403.html", "404.html", "405.html", "500.html", "503.html"]
)
def test_menu_of_an_error_page_needs_no_database(template, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert elements(render_to_string(template)).all("nav.nav")


def test_number_of_an_empty_cart_is_plain(client):
    products(1)
    assert page(client.get("/")).only("#cart-link").only("span.count")["class"] == "count"
    client.post("/cart/add/", {"sku": "sku-0"})
    assert page(client.get("/")).only("#cart-link").only("span.count")["class"] == "count full"
