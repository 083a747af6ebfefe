"""The API is what its OpenAPI document says: schemathesis tries what it allows, and what it does not."""

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
from orders.api import messages
from orders.api.site import api
from orders.throttle import Limit
from sasweb.wsgi import application as wsgi
from tests.applications import Caller, application
from tests.engine import new_task
from tests.shop import finish_all, products

pytestmark = pytest.mark.django_db
EXAMPLES = 20  # for each operation and kind of data

document = json.loads(json.dumps(api.get_openapi_schema(), cls=DjangoJSONEncoder))
schema = schemathesis.openapi.from_dict(document)
schema.app = wsgi
OPERATIONS = {
    one.ok().definition.raw["operationId"]: one.ok() for one in schema.get_all_operations()
}


@pytest.fixture
def token(monkeypatch):
    """Return a token of an application that has an order and messages; let nobody wait."""
    taken = threading.Lock()
    taken.acquire()
    monkeypatch.setattr(messages, "_waiting", taken)
    monkeypatch.setattr("orders.api.access.STRANGERS", Limit("api-stranger", most=10**9, seconds=1))
    products()
    _, token = application("till", rate=10**9, most_priority=10)
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
    """Say what a JSON schema cannot."""
    lines = body.get("lines", []) if isinstance(body, dict) else []
    return len({line["sku"] for line in lines}) < len(lines)


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_it_is_what_it_says(operation, mode, token):
    @given(case=OPERATIONS[operation].as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def holds(case):
        assume(mode.is_negative or not names_a_product_twice(case.body))
        case.call_and_validate(headers={"Authorization": f"Bearer {token}"})

    holds()
