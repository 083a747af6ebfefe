"""Buy, pay and cancel as a customer does, and answer the requests to the shop's agents."""

import re
from importlib import import_module
from uuid import UUID, uuid4

from django.apps import apps
from django.test import Client

from orchestration import submission, task_requests
from orchestration.applications import status_messages
from orchestration.models import Submission, Task
from orchestration.transitions.claim import claim
from orchestration.transitions.replies import record
from orders.lifecycle.message import Address, Line, Mail, Message
from orders.models import Product
from tests.support.engine import reply_to
from tests.support.page import elements

# the steps that an order of goods in one warehouse, to a usual address, by a card without risk does not need
NOT_NEEDED = {"review_order", "make_goods", "plan_parcels", "send_parcels"}
AGENTS = ["inventory", "payment", "shipping", "notification"]

DETAILS = {
    "name": "Ada Lovelace",
    "email": "ada@example.org",
    "street": "Rue de Lyon 12",
    "postcode": "1203",
    "city": "Genève",
    "country": "CH",
    "payment_method": "pm_card_visa",
}


def products(count=3):
    """Create products: sku-0 at 10.00, sku-1 at 11.00, …"""
    return Product.objects.bulk_create(
        Product(
            sku=f"sku-{number}",
            slug=f"slug-{number}",
            name=f"Product {number}",
            kind="Coffee",
            summary="Good.",
            description="Very good.",
            price=1000 + 100 * number,
            picture="coffee-morning",
            position=number,
        )
        for number in range(count)
    )


def tax_rates() -> None:
    """Have the tax rates that the migration brings, also after tests that empty all tables."""
    import_module("orders.migrations.0009_tax").fill(apps, None)


def message(order=None, **changes) -> Message:
    """Return the message of an order of two of sku-0."""
    known = {
        "order": order or uuid4(),
        "email": "ada@example.org",
        "address": Address(name="Ada", street="Rue 1", postcode="3011", city="Bern", country="CH"),
        "payment_method": "pm_card_visa",
        "currency": "EUR",
        "total": 2000,
        "lines": [Line(sku="sku-0", name="Product 0", unit_price=1000, quantity=2)],
        "confirmation": Mail(subject="Yes", text="It is."),
    }
    return Message(**{**known, **changes})


def fill_cart(client: Client, **quantities):
    """Put products into the cart, as in fill_cart(client, sku_0=2)."""
    for sku, quantity in quantities.items():
        data = {"sku": sku.replace("_", "-"), "quantity": quantity}
        assert client.post("/cart/add/", data).status_code == 303


def token_of(response) -> str:
    """Return the token in a checkout page."""
    match = re.search(r'name="token" value="([^"]+)"', response.content.decode())
    assert match, "the page has no token"
    return match[1]


def open_checkout(client: Client) -> str:
    return token_of(client.get("/checkout/"))


def send(client: Client, token: str, **changes):
    return client.post("/checkout/", {**DETAILS, "token": token, **changes})


def buy(client: Client, **quantities) -> UUID:
    """Fill the cart, check out, and return the order's id."""
    fill_cart(client, **quantities or {"sku_0": 2})
    response = send(client, open_checkout(client))
    assert response.status_code == 303, response.content.decode()
    return order_in(response)


def order_in(response) -> UUID:
    """Return the id of the order that a response redirects to."""
    return UUID(response["Location"].split("/")[2])


def visit(client: Client, address: str) -> str:
    """Return the HTML of a page that a visitor may see."""
    response = client.get(address)
    assert response.status_code == 200
    return response.text


def without_input(html: str) -> str:
    """Return a page's HTML without what differs between visitors: values and CSRF tokens."""
    return re.sub(r'value="[^"]*"|X-CSRFToken[^}]*', "", html)


def order_page(client: Client, order) -> str:
    return visit(client, f"/orders/{order}/")


def poll_address(html: str) -> str | None:
    """Return the address that an order's page polls; None if it is final."""
    return elements(html).only("#order-status").attributes.get("hx-get")


def verdict(html: str) -> str:
    """Return the sentence on an order's page that states how the order is."""
    return elements(html).only("#verdict").text


def order_verdict(client: Client, order) -> str:
    return verdict(order_page(client, order))


def current_stages(html: str) -> list[str]:
    """Return the texts of the stages on an order's page that are under way."""
    return [stage.all("span")[0].children[0] for stage in elements(html).all("li.now")]


def inform() -> None:
    """Deliver the shop's status messages."""
    while status_messages.deliver("shop", 100):
        pass


def carry_out() -> None:
    """Take the submissions and task requests, then deliver the shop's status messages."""
    submission.take(100)
    task_requests.take(100)
    inform()


def finish_all() -> None:
    """Answer "done" to every request until none is left."""
    while requests := [
        sent for group in claim(AGENTS, "scheduler-1").requests.values() for sent in group
    ]:
        record([reply_to(sent, result={"id": "x_1", "tracking": "TRK1"}) for sent in requests])
    inform()


def ask():
    """Claim for all agents; return the requests by the name of the step."""
    groups = claim(AGENTS, "scheduler-1").requests.values()
    return {request.name: request for group in groups for request in group}


def reply(requests, **refused):
    """Answer requests with "done", or reject a step given as `name="code|message"`."""
    replies = []
    for name, request in requests.items():
        code, _, message = refused.get(name, "").partition("|")
        replies.append(
            reply_to(request, "rejected", code=code, message=message)
            if code
            else reply_to(request, result={"id": f"{name}_1", "tracking": "TRK1"})
        )
    assert record(replies).accepted == len(replies)


def answer(requests, **refused):
    """Record replies as `reply` does, and inform the shop."""
    reply(requests, **refused)
    inform()


def placed(client, **quantities):
    """Place an order whose task exists, with no step claimed."""
    order = buy(client, **quantities)
    carry_out()
    return order


def declined(client, **quantities):
    order = placed(client, **quantities)
    answer(ask(), authorize_payment="generic_decline|no")
    return order


def sold_out(client, **quantities):
    order = placed(client, **quantities or {"sku_0": 2, "sku_1": 1})
    answer(ask(), reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand")
    return order


def posted(kind):
    """Return the letters of a kind that were posted, sent or not, the oldest first."""
    about = {"workflow": "tell_customer", "reference__contains": f":{kind}"}
    taken = Task.objects.filter(**about).order_by("created_at")
    waiting = Submission.objects.filter(**about).order_by("id")
    return [row.data["mail"] for row in [*taken, *waiting]]
