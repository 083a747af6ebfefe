"""Who may do what through the API: every route, every kind of caller."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from orchestration import applications, submission
from orchestration.models import Application
from orders.api.site import urls
from orders.models import Placement
from tests.applications import Caller, application
from tests.operators import browser, person
from tests.shop import inform, products

pytestmark = pytest.mark.django_db

# the owner gets the first; for all but those the answer is the same for every route
CALLERS = ["owner", "other", "half", "revoked", "expired", "off", "anonymous", "superuser"]
SIGN_IN = {"revoked": 401, "expired": 401, "off": 401, "anonymous": 401, "superuser": 401}
TABLE = {  # route: method, address, body, then what owner, other and a token of other scopes get
    "placeOrder": ("post", "orders", {}, (400, 400, 403)),
    "listOrders": ("get", "orders", None, (200, 200, 403)),
    "readOrder": ("get", "orders/{order}", None, (200, 404, 403)),
    "cancelOrder": ("post", "orders/{order}/cancel", {}, (202, 404, 403)),
    "fetchStatusMessages": ("get", "status-messages", None, (200, 200, 403)),
    "acknowledgeStatusMessages": (
        "post", "status-messages/acknowledge", {"ids": [1]}, (200, 200, 403)),
}  # fmt: skip


@pytest.fixture
def order():
    products()
    _, token = application("till")
    made = Caller(token).place().json()["id"]
    submission.take(10)
    inform()
    return token, made


def caller(who, owner, route):
    if who == "owner":
        return Caller(owner)
    if who in {"anonymous", "superuser"}:
        found = Caller("")
        found.headers = {}
        if who == "superuser":
            found.client = browser(person("root", is_superuser=True, is_staff=True))
        return found
    needed = {"orders" if "Order" in route else "status"}
    scopes = [one for one in applications.registry.scopes if one.partition(":")[0] not in needed]
    made, token = application(who, *(scopes if who == "half" else ()), active=who != "off")
    rows = made.tokens.all()
    if who == "revoked":
        applications.revoke([row.id for row in rows], by="ada")
    if who == "expired":
        rows.update(expires_at=timezone.now() - timedelta(days=1))
    return Caller(token)


def test_every_route_has_a_row():
    document = Client().get("/api/openapi.json").json()
    ids = {one["operationId"] for paths in document["paths"].values() for one in paths.values()}
    assert ids == set(TABLE)
    names = {pattern.name for pattern in urls[0]}
    assert {"openapi-json", "openapi-view", "nothing"} <= names


@pytest.mark.parametrize("route", TABLE)
@pytest.mark.parametrize("who", CALLERS)
def test_the_table_holds(who, route, order):
    token, made = order
    method, address, body, (own, other, half) = TABLE[route]
    found = caller(who, token, route)
    arguments = [] if body is None else [body]
    answer = getattr(found, method)(address.format(order=made), *arguments)
    expected = {"owner": own, "other": other, "half": half, **SIGN_IN}[who]
    assert answer.status_code == expected, answer.text
    if expected >= 400:
        assert answer["Content-Type"] == "application/problem+json"
        assert made not in answer.text
        assert ("WWW-Authenticate" in answer) == (expected == 401)
    if who == "other" and expected == 200:
        assert made not in answer.text
    assert answer["Cache-Control"] == "no-store"


def test_another_host_is_told_in_the_callers_own_tongue(order):
    answer = Client(headers={"host": "elsewhere.example"}).get("/api/orders")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert answer.json()["code"] == "bad_request"
    page = Client(headers={"host": "elsewhere.example"}).get("/")
    assert (page.status_code, page["Content-Type"]) == (400, "text/html; charset=utf-8")


def test_an_order_of_the_shops_own_is_nobodys_here(order, client):
    token, _ = order
    bought = uuid4()
    Placement.objects.create(order=bought, fingerprint="x")
    assert Caller(token).get(f"orders/{bought}").status_code == 404


def test_reading_is_not_writing(order):
    _, made = order
    till = Application.objects.get(name="till")
    _, token = applications.issue(till, label="x", scopes=["orders:read"], by="ada")
    reader = Caller(token)
    assert reader.get(f"orders/{made}").status_code == 200
    assert reader.post(f"orders/{made}/cancel").status_code == 403
    assert reader.place("other").status_code == 403
    assert reader.get("status-messages").status_code == 403


def test_the_reference_shows_every_operation_and_needs_no_script():
    page = Client().get("/api/docs")
    assert page.status_code == 200
    for operation in TABLE:
        assert f'id="{operation}"' in page.text
    assert "<script" not in page.text
    assert "Idempotency-Key" in page.text
    assert "lines[].sku" in page.text
    assert "cdn" not in Client().get("/api/docs/try").text
