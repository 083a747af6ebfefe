"""All pages: headers, query counts, health, failures, staff access and seeding."""

import re
from html.parser import HTMLParser
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection
from django.test import Client
from redis.exceptions import ConnectionError as RedisDown

from orchestration import submission
from orchestration.messaging import queues
from orchestration.models import Submission
from orders.models import Product
from orders.rate_limit import Limit
from orders.shop.views.errors import NOTHING_ORDERED, PERHAPS_ORDERED
from tests.support.database import kill, locked, read_only, reads_fail, writes_fail
from tests.support.operators import browser, person
from tests.support.shop import buy, fill_cart, open_checkout, products, send

pytestmark = pytest.mark.django_db
PAGES = ["/", "/products/slug-0/", "/cart/", "/checkout/", "/orders/find/", "/login/", "/nowhere/"]


class Inline(HTMLParser):
    """Collects what the content security policy forbids."""

    def __init__(self):
        super().__init__()
        self.wrong = []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        if tag == "style" or (tag == "script" and not names.get("src")):
            self.wrong.append(tag)
        self.wrong += [n for n in names if n == "style" or n.startswith(("on", "hx-on", "hx-vals"))]


@pytest.mark.parametrize("path", PAGES)
def test_page_has_a_strict_policy_and_nothing_inline(client, path):
    products()
    fill_cart(client, sku_0=1)
    response = client.get(path)
    parser = Inline()
    parser.feed(response.text)
    assert parser.wrong == []
    policy = response["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("count", [1, 40])
def test_grid_query_count(django_assert_num_queries, count):
    products(count)
    with django_assert_num_queries(2):  # the shelves, the products
        Client().get("/")


@pytest.fixture
def shelves():
    products()  # Coffee at 10.00, 11.00, 12.00
    tea = {"kind": "Tea", "summary": "Good.", "description": "Dear.", "picture": "tea-mint"}
    Product.objects.bulk_create(
        [
            Product(sku="mint", slug="mint", name="Garden Mint", price=590, position=8, **tea),
            Product(sku="pot", slug="pot", name="Big Pot 100%", price=4400, position=9, **tea),
        ]
    )


def search(query, **headers):
    """Return the names of the products that an address shows, and its page."""
    page = Client().get(f"/{query}", **headers).text
    return re.findall(r'class="product-name">([^<]+)<', page), page


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?kind=Tea", ["Garden Mint", "Big Pot 100%"]),
        ("?price=under-10", ["Garden Mint"]),
        ("?price=over-30", ["Big Pot 100%"]),
        ("?price=10-to-30&kind=Coffee&q=product+1", ["Product 1"]),
        ("?q=DEAR+mint", ["Garden Mint"]),
        ("?q=100%25", ["Big Pot 100%"]),
        ("?q=elephant", []),
        ("?q=%00&kind=Nothing&price=-1&unknown=1", 5),
        ("?q=" + "x" * 5000, 5),
    ],
)
def test_grid_filters_of_the_url(shelves, query, names):
    shown, page = search(query)
    assert (len(shown) if isinstance(names, int) else shown) == names
    if not shown:
        assert 'class="empty"' in page


def test_grid_with_htmx_pushes_the_url(shelves):
    response = Client().get("/?q=&kind=Tea&price=", HTTP_HX_REQUEST="true")
    assert response["HX-Push-Url"] == "/?kind=Tea"
    there = {"HTTP_HX_REQUEST": "true", "HTTP_HX_CURRENT_URL": "http://testserver/?kind=Tea"}
    assert Client().get("/?q=&kind=Tea&price=", **there)["HX-Push-Url"] == "false"
    page = response.text
    assert "<html" not in page
    assert 'data-count="2"' in page
    assert 'name="next" value="/?kind=Tea"' in page


def test_product_page_query_count(django_assert_num_queries):
    products(10)
    with django_assert_num_queries(2):
        Client().get("/products/slug-3/")


def test_liveness_and_readiness(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert client.get("/livez").content == b"alive\n"
    assert client.get("/readyz").json() == {
        "ready": True,
        "database": "ok",
        "redis": "ok",
    }


def test_shop_is_ready_without_redis(client, settings):
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {"ready": True, "database": "ok", "redis": "away"}


@pytest.mark.django_db(transaction=True)
def test_readiness_recovers_with_the_database(client):
    connection.ensure_connection()
    kill()
    assert client.get("/readyz").json()["database"] == "away"
    assert client.get("/readyz").json()["database"] == "ok"
    connection.connection.close()  # closed by the client: another class of error
    assert client.get("/readyz").json()["database"] == "away"
    assert client.get("/readyz").json()["database"] == "ok"


@pytest.mark.django_db(transaction=True)
def test_readiness_with_a_read_only_database(client):
    with read_only():
        response = client.get("/readyz")
        assert (response.status_code, response.json()["database"]) == (503, "away")
    assert client.get("/readyz").json()["ready"] is True


@pytest.mark.django_db(transaction=True)
def test_checkout_without_redis(client, monkeypatch):
    products()

    def down():
        raise RedisDown("gone")

    monkeypatch.setattr(queues, "connection", down)
    buy(client)
    assert Submission.objects.filter(workflow="process_order").count() == 1


@pytest.fixture
def public():
    return Client(raise_request_exception=False)


@pytest.mark.django_db(transaction=True)
def test_page_without_the_database(public):
    products()
    with reads_fail("orders_product", "57P01", times=1):
        response = public.get("/")
    assert response.status_code == 503
    assert response["Retry-After"] == "30"
    assert str(NOTHING_ORDERED) in response.text


@pytest.mark.django_db(transaction=True)
def test_page_with_a_lock_timeout(public):
    products()
    with locked("orders_product"):
        response = public.get("/")
    assert (response.status_code, response["Retry-After"]) == (503, "30")
    assert public.get("/").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_checkout_that_fails_before_the_order(public):
    products()
    fill_cart(public, sku_0=1)
    token = open_checkout(public)
    with locked("orders_placement"):
        page = send(public, token)
    assert page.status_code == 503
    assert str(NOTHING_ORDERED) in page.text


@pytest.mark.django_db(transaction=True)
def test_checkout_that_fails_while_ordering(public):
    products()
    fill_cart(public, sku_0=1)
    token = open_checkout(public)
    with writes_fail("orders_placement", "INSERT", "57P01", times=1):
        page = send(public, token)
    assert page.status_code == 503
    assert str(PERHAPS_ORDERED) in page.text
    fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
    assert fields["token"] == token
    again = public.post("/checkout/", fields)  # by the page's own button
    assert again.status_code == 303
    assert send(public, token)["Location"] == again["Location"]


def test_internal_error_page(public, monkeypatch):
    def broken(*_args, **_kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr("orders.shop.views.products.Product.objects.sold", broken)
    response = public.get("/")
    assert response.status_code == 500
    assert str(NOTHING_ORDERED) in response.text
    assert "ZeroDivisionError" not in response.text


@pytest.mark.parametrize("path", ["/django-rq/stats.json", "/admin/django_rq/dashboard/"])
def test_pages_of_django_rq_are_not_found(path):
    """They cannot show the engine's workers, and would enqueue and delete messages."""
    assert browser(person("eve", is_staff=True, is_superuser=True)).get(path).status_code == 404


def test_admin_orders_are_read_only(client):
    products()
    admin = browser(person("eve", is_staff=True, is_superuser=True))
    order = buy(client)
    submission.take(1)
    assert admin.get("/admin/orders/order/").status_code == 200
    assert 'name="_save"' not in admin.get(f"/admin/orders/order/{order}/change/").text
    assert admin.get("/admin/orders/order/add/").status_code == 403
    assert admin.get("/admin/orders/product/sku-0/change/").status_code == 200
    assert admin.post("/admin/orders/product/sku-0/delete/", {"post": "yes"}).status_code == 403


def test_login_and_logout():
    get_user_model().objects.create_user("olga", password="secret")
    client = Client()
    wrong = client.post("/login/", {"username": "olga", "password": "wrong"})
    assert 'class="errors"' in wrong.text
    right = client.post("/login/", {"username": "olga", "password": "secret", "next": "/"})
    assert right["Location"] == "/"
    assert client.post("/logout/")["Location"] == "/"
    assert client.get("/logout/").status_code == 405


def test_login_is_rate_limited(monkeypatch):
    get_user_model().objects.create_user("olga", password="secret")
    monkeypatch.setattr("sasweb.login.LOG_INS", Limit("log-in", most=2, seconds=600))
    client = Client()
    for name in ("ada", "bea"):
        assert client.post("/login/", {"username": name, "password": "x"}).status_code == 200
    right = client.post("/login/", {"username": "olga", "password": "secret"})
    assert (right.status_code, right["Retry-After"]) == (429, "600")
    assert 'data-locked="address"' in right.text
    other = client.post(
        "/admin/login/?next=/admin/auth/", {"username": "olga", "password": "secret"}
    )
    assert (other.status_code, other["Location"]) == (302, "/login/?next=/admin/auth/")


@pytest.fixture
def seed(settings, monkeypatch, tmp_path):
    """Seed without an inventory service; return the command's log."""
    settings.INVENTORY_URL = "http://127.0.0.1:9"  # nothing listens there
    monkeypatch.setattr("sasweb.stack.folders.data_dir", lambda: tmp_path)

    def run():
        log = StringIO()
        call_command("seed", stderr=log)
        return log.getvalue()

    return run


def test_seeding_twice_changes_nothing(seed, tmp_path):
    assert "no stock added" in seed()
    assert Product.objects.count() == 27
    Product.objects.filter(sku="tea-mint").update(price=1)
    seed()
    assert Product.objects.count() == 27
    assert Product.objects.get(sku="tea-mint").price == 1
    operator = get_user_model().objects.get(username="operator")
    assert operator.has_perm("orchestration.resubmit")
    assert operator.has_perm("orchestration.operate")
    assert not operator.is_staff
    assert not Group.objects.get(name="viewer").permissions.filter(codename="resubmit")
    secret = (tmp_path / "secrets" / "operator_password").read_text()
    assert operator.check_password(secret)


def test_seeded_products_have_pictures(seed, settings):
    seed()
    folder = settings.BASE_DIR / "static"
    assert all((folder / product.picture_path).exists() for product in Product.objects.all())
    assert len(re.findall('class="product"', Client().get("/").content.decode())) == 27
