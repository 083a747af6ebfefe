"""The API conforms to its OpenAPI document for valid and invalid requests (schemathesis)."""

import json
import threading

import pytest
import schemathesis
from django.core.serializers.json import DjangoJSONEncoder
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, assume, given, settings
from schemathesis import GenerationMode

from orchestration import submission
from orders.addresses import country
from orders.api import status_messages
from orders.api.app import api
from orders.rate_limit import Limit
from sasweb.wsgi import application as wsgi
from tests.support.applications import Caller, application
from tests.support.engine import new_task
from tests.support.shop import finish_all, products

pytestmark = pytest.mark.django_db
EXAMPLES = 20  # for each operation and kind of data

document = json.loads(json.dumps(api.get_openapi_schema(), cls=DjangoJSONEncoder))
schema = schemathesis.openapi.from_dict(document)
schema.app = wsgi
OPERATIONS = {
    operation.ok().definition.raw["operationId"]: operation.ok()
    for operation in schema.get_all_operations()
}


@pytest.fixture
def token(monkeypatch):
    """Return a token of an application with an order and messages; requests do not wait."""
    taken = threading.Lock()
    taken.acquire()
    monkeypatch.setattr(status_messages, "_waiting", taken)
    monkeypatch.setattr(
        "orders.api.auth.UNKNOWN_TOKENS", Limit("api-stranger", most=10**9, seconds=1)
    )
    products()
    _, token = application("till", rate=10**9, max_priority=10)
    Caller(token).place()
    submission.take(10)
    finish_all()
    new_task(reply_to="till")
    # the test's connection, with its transaction, is kept from request to request
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield token
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def names_a_product_twice(body):
    """Return whether a body breaks the rule that a JSON schema cannot express."""
    lines = body.get("lines", []) if isinstance(body, dict) else []
    return len({line["sku"] for line in lines}) < len(lines)


def at_home(body):
    """Return a body whose address its country has, which a JSON schema cannot express either."""
    if not isinstance(body, dict) or "address" not in body:
        return body
    rules = country(body["address"]["country"])
    place = {"street": "Weg 12", "postcode": rules.postcode_example, "region": ""}
    if "region" in rules.required:
        place["region"] = next(iter(rules.regions))
    return {**body, "address": {**body["address"], **place}}


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_api_conforms_to_its_schema(operation, mode, token):
    @given(case=OPERATIONS[operation].as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def holds(case):
        assume(mode.is_negative or not names_a_product_twice(case.body))
        if mode.is_positive:
            case.body = at_home(case.body)
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"})

    holds()
