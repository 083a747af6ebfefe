"""Short words for what customers do, so that tests say what they are about."""

import re
from uuid import UUID

from django.test import Client

from orchestration import status, submission
from orchestration.interface import requests
from orchestration.models import Submission, Task
from orchestration.transitions.claim import claim
from orchestration.transitions.record import record
from orders.models import Product
from tests.engine import reply_to

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
    """Put products on the shelf: sku-0 at 10.00, sku-1 at 11.00, …"""
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


def fill_cart(client: Client, **quantities):
    """Put products into the cart, as in fill_cart(client, sku_0=2)."""
    for sku, quantity in quantities.items():
        data = {"sku": sku.replace("_", "-"), "quantity": quantity}
        assert client.post("/cart/add/", data).status_code == 303


def token_of(response) -> str:
    """Return the token in a checkout page."""
    found = re.search(r'name="token" value="([^"]+)"', response.content.decode())
    assert found, "the page has no token"
    return found[1]


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


def inform() -> None:
    """Deliver the shop's status messages."""
    while status.deliver("shop", 100):
        pass


def carry_out() -> None:
    """Have the engine take what is posted and requested, and inform the shop."""
    submission.take(100)
    requests.take(100)
    inform()


def finish_all() -> None:
    """Answer "done" to whatever the agents are asked, until nothing is left to ask."""
    while requests := [
        one for group in claim(AGENTS, "scheduler-1").requests.values() for one in group
    ]:
        record([reply_to(one, result={"id": "x_1", "tracking": "TRK1"}) for one in requests])
    inform()


def ask():
    """Return what agents are asked now, by step."""
    found = claim(AGENTS, "scheduler-1").requests.values()
    return {one.name: one for group in found for one in group}


def answer(requests, **refused):
    """Answer requests: done, or refused with the code (and message) given for a step."""
    replies = []
    for name, request in requests.items():
        code, _, message = refused.get(name, "").partition("|")
        replies.append(
            reply_to(request, "rejected", code=code, message=message)
            if code
            else reply_to(request, result={"id": f"{name}_1", "tracking": "TRK1"})
        )
    assert record(replies).accepted == len(replies)
    inform()


def placed(client, **quantities):
    """Buy something; it is taken, and nothing is done about it yet."""
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
