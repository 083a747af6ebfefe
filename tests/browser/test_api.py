"""The API on a whole stack: a client made from the document, the example client, the reference."""

import json
import urllib.request
from uuid import uuid4

import pytest
from axe_playwright_python.sync_playwright import Axe

from docs.examples.shop_client import Shop, ShopError
from drill.waiting import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


@pytest.fixture
def token(stack):
    return f"sas_{(stack.folder / 'secrets' / 'example_token').read_text()}"


class FromDocument:
    """A client made from the OpenAPI document at an address."""

    def __init__(self, address, token):
        self.address, self.token = address, token
        self.document = self.exchange("GET", "/api/openapi.json")
        self.operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in self.document["paths"].items()
            for method, operation in methods.items()
        }
        (scheme,) = self.document["components"]["securitySchemes"].values()
        assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")

    def exchange(self, method, path, body=None, headers=()):
        request = urllib.request.Request(  # noqa: S310 - the stack's own address
            self.address + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **dict(headers)},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.load(answer)

    def example(self, operation):
        """Return the example of an operation's body."""
        content = self.operations[operation][2]["requestBody"]["content"]
        name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
        return self.document["components"]["schemas"][name]["examples"][0]

    def call(self, operation, body=None, **arguments):
        method, path, declared = self.operations[operation]
        headers, query = {"Authorization": f"Bearer {self.token}"}, []
        for parameter in declared["parameters"]:
            value = arguments.pop(parameter["name"].replace("-", "_"), None)
            assert value is not None or not parameter["required"]
            if value is None:
                continue
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", str(value))
            elif parameter["in"] == "header":
                headers[parameter["name"]] = str(value)
            else:
                query.append(f"{parameter['name']}={value}")
        assert not arguments
        return self.exchange(method, f"{path}?{'&'.join(query)}", body, headers.items())


def test_client_made_from_the_document_places_and_follows_an_order(stack, token):
    client = FromDocument(f"http://localhost:{stack.port}", token)
    body = client.example("placeOrder")
    placed = client.call("placeOrder", body, Idempotency_Key=uuid4())
    read = {"order_id": placed["id"]}
    wait_for(lambda: client.call("readOrder", **read)["status"] == "completed", "it ends", 60)
    assert client.call("readOrder", **read)["tracking"]
    assert placed["id"] in {order["id"] for order in client.call("listOrders", limit=5)["orders"]}
    messages = client.call("fetchStatusMessages", wait=20)["messages"]
    own = [message for message in messages if message["reference"] == placed["id"]]
    assert [message["kind"] for message in own] == ["received", "completed"]
    done = client.call("acknowledgeStatusMessages", {"ids": [message["id"] for message in own]})
    assert done == {"acknowledged": 2}


def test_example_client_cannot_change_a_completed_order(stack, token):
    shop = Shop(f"http://localhost:{stack.port}", token)
    order = {
        "email": "ada@example.org",
        "address": {"name": "Ada", "street": "Rue de Lyon 12", "postcode": "1203",
                    "city": "Genève", "country": "CH"},
        "payment_method": "pm_card_visa",
        "lines": [{"sku": "tea-mint", "quantity": 1}],
    }  # fmt: skip
    key = str(uuid4())
    placed = shop.place(key=key, order=order)
    assert shop.place(key=key, order=order) == placed
    seen = []
    while "completed" not in seen:
        messages = shop.messages(wait=20)
        seen += [message.kind for message in messages if message.reference == placed["id"]]
        assert shop.acknowledge([message.id for message in messages]) == len(messages)
    assert seen == ["received", "completed"]
    order_id, parcel = placed["id"], shop.order(placed["id"])["tracking"]
    more = [{"sku": "tea-mint", "quantity": 2}]
    too_late = {
        "cannot_be_cancelled": lambda: shop.cancel(order_id),
        "cannot_be_readdressed": lambda: shop.readdress(order_id, order["address"]),
        "not_claimable": lambda: shop.claim(order_id, parcel),  # or too early
        "too_many_units": lambda: shop.send_back(order_id, key=key, lines=more),
    }
    for code, act in too_late.items():
        with pytest.raises(ShopError) as refused:
            act()
        assert (refused.value.status, refused.value.code) == (409, code)
    assert order_id in {order["id"] for order in shop.orders(page=1)}
    assert shop.returns(order_id) == shop.claims(order_id) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_reference_is_public_and_accessible(visit, scheme):
    page = visit("/api/docs", color_scheme=scheme, viewport={"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert Axe().run(page).response["violations"] == []
    assert page.problems == []
