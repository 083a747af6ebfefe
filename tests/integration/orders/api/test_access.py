"""Access to the API: every route for every kind of caller."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from orchestration import submission
from orchestration.applications import tokens
from orchestration.models import Application
from orders.api.app import urls
from orders.models import Placement
from tests.support.applications import Caller, application
from tests.support.operators import browser, person
from tests.support.shop import inform, products

pytestmark = pytest.mark.django_db

# "half" has a token of other scopes; from "revoked" on, each route gives the same status
CALLERS = ["owner", "other", "half", "revoked", "expired", "off", "anonymous", "superuser"]
SIGN_IN = {"revoked": 401, "expired": 401, "off": 401, "anonymous": 401, "superuser": 401}
TABLE = {  # route: method, address, body, and the statuses for owner, other and half
    "listProducts": ("get", "products", None, (200, 200, 200)),
    "placeOrder": ("post", "orders", {}, (400, 400, 403)),
    "listOrders": ("get", "orders", None, (200, 200, 403)),
    "readOrder": ("get", "orders/{order}", None, (200, 404, 403)),
    "cancelOrder": ("post", "orders/{order}/cancel", {}, (202, 404, 403)),
    "changeAddress": ("post", "orders/{order}/address", {}, (422, 422, 403)),
    "removeLines": ("post", "orders/{order}/remove", {}, (400, 400, 403)),
    "askForReturn": ("post", "returns", {}, (400, 400, 403)),
    "listReturns": ("get", "returns?order={order}", None, (200, 404, 403)),
    "claimParcel": ("post", "claims", {}, (422, 422, 403)),
    "listClaims": ("get", "claims?order={order}", None, (200, 404, 403)),
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
        made_caller = Caller("")
        made_caller.headers = {}
        if who == "superuser":
            made_caller.client = browser(person("root", is_superuser=True, is_staff=True))
        return made_caller
    needed = {"status" if "Status" in route else "orders"}
    scopes = [scope for scope in tokens.registry.scopes if scope.partition(":")[0] not in needed]
    made, token = application(who, *(scopes if who == "half" else ()), active=who != "off")
    rows = made.tokens.all()
    if who == "revoked":
        tokens.revoke([row.id for row in rows], by="ada")
    if who == "expired":
        rows.update(expires_at=timezone.now() - timedelta(days=1))
    return Caller(token)


def test_route_of_the_api_is_in_the_table():
    document = Client().get("/api/openapi.json").json()
    ids = {spec["operationId"] for paths in document["paths"].values() for spec in paths.values()}
    assert ids == set(TABLE)
    names = {pattern.name for pattern in urls[0]}
    assert {"openapi-json", "openapi-view", "api-root"} <= names


@pytest.mark.parametrize("route", TABLE)
@pytest.mark.parametrize("who", CALLERS)
def test_route_for_each_caller(who, route, order):
    token, made = order
    method, address, body, (own, other, half) = TABLE[route]
    client = caller(who, token, route)
    arguments = [] if body is None else [body]
    answer = getattr(client, method)(address.format(order=made), *arguments)
    expected = {"owner": own, "other": other, "half": half, **SIGN_IN}[who]
    assert answer.status_code == expected, answer.text
    if expected >= 400:
        assert answer["Content-Type"] == "application/problem+json"
        assert made not in answer.text
        assert ("WWW-Authenticate" in answer) == (expected == 401)
    if who == "other" and expected == 200:
        assert made not in answer.text
    assert answer["Cache-Control"] == "no-store"


def test_root_leads_to_the_reference():
    answer = Client().get("/api/")
    assert (answer.status_code, answer["Location"]) == (302, "/api/docs")
    assert Client().post("/api/").json()["code"] == "not_found"


def test_unknown_host_gets_a_problem_below_the_api_only(order):
    answer = Client(headers={"host": "elsewhere.example"}).get("/api/orders")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert answer.json()["code"] == "bad_request"
    page = Client(headers={"host": "elsewhere.example"}).get("/")
    assert (page.status_code, page["Content-Type"]) == (400, "text/html; charset=utf-8")


def test_order_of_the_shop_is_not_found_by_applications(order, client):
    token, _ = order
    bought = uuid4()
    Placement.objects.create(order=bought, fingerprint="x")
    assert Caller(token).get(f"orders/{bought}").status_code == 404


def test_token_with_the_read_scope_cannot_write(order):
    _, made = order
    till = Application.objects.get(name="till")
    _, token = tokens.issue(till, label="x", scopes=["orders:read"], by="ada")
    reader = Caller(token)
    answer = reader.get(f"orders/{made}")
    assert (answer.status_code, answer.json()["page"]) == (200, None)
    for address in (f"orders/{made}", "orders"):  # who has the customer's link can cancel the order
        assert "?t=" not in reader.get(address).text
    assert reader.post(f"orders/{made}/cancel").status_code == 403
    assert reader.place("other").status_code == 403
    assert reader.get("status-messages").status_code == 403


def test_reference_lists_each_operation_without_a_script():
    page = Client().get("/api/docs")
    assert page.status_code == 200
    for operation in TABLE:
        assert f'id="{operation}"' in page.text
    assert "<script" not in page.text
    assert "Idempotency-Key" in page.text
    assert "lines[].sku" in page.text
