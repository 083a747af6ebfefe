"""Applications for tests: with a token, and what they send."""

from django.test import Client

from orchestration.applications import tokens
from orchestration.models import Application

ALL = ("orders:write", "orders:read", "status:read")


def application(name="till", *scopes, **fields) -> tuple[Application, str]:
    """Make an application with a token; return both."""
    made = Application.objects.create(name=name, **fields)
    _, token = tokens.issue(made, label="test", scopes=scopes or ALL, by="a test")
    return made, token


def new_order(quantity=2, sku="sku-0", **changes):
    """Return an order as an application sends it."""
    return {
        "email": "ada@example.org",
        "address": {
            "name": "Ada Lovelace",
            "street": "Rue de Lyon 12",
            "postcode": "1203",
            "city": "Genève",
            "country": "CH",
        },
        "payment_method": "pm_card_visa",
        "lines": [{"sku": sku, "quantity": quantity}],
        **changes,
    }


class Caller:
    """A program that calls the API with a token."""

    def __init__(self, token: str) -> None:
        self.headers = {"Authorization": f"Bearer {token}"}
        self.client = Client(raise_request_exception=False)

    def get(self, address, **query):
        return self.client.get(f"/api/{address}", query, headers=self.headers)

    def post(self, address, body=None, **headers):
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(
            f"/api/{address}",
            body,
            content_type="application/json",
            headers={**self.headers, **more},
        )

    def place(self, key="key-1", order=None):
        return self.post("orders", order or new_order(), Idempotency_Key=key)
