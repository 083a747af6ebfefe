"""What the API says of a wrong field: the shop's sentences, without regular expressions."""

import re

import pytest
from django.utils import translation

from orders.models import Placement
from orders.shop.forms import CheckoutForm
from tests.support.applications import Caller, application, new_order
from tests.support.shop import DETAILS, products

pytestmark = pytest.mark.django_db
JARGON = re.compile(r"[\^$\\{}]|pattern|Input|validation|_")


@pytest.fixture
def till():
    products()
    return Caller(application("till")[1])


def errors(answer):
    assert answer.status_code == 422, answer.text
    assert not Placement.objects.exists()
    body = answer.json()
    first = body["errors"][0]
    assert body["detail"] == f"{first['field']}: {first['message']}"
    assert not JARGON.search(first["message"]), first
    assert "key" not in body["what_to_do"]
    return {error["field"]: error["message"] for error in body["errors"]}


def send(till, field, value):
    """Return the sentence that the API has for a field."""
    order = new_order()
    inside = order["address"] if field in order["address"] else order
    inside[field] = value
    path = field if inside is order else f"address.{field}"
    return errors(till.place(order=order))[path]


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("email", "ada", "invalid"),
        ("country", "XX", "invalid_choice"),
        ("country", "", "invalid_choice"),
        ("payment_method", "pm_card_gold", "invalid_choice"),
        ("name", "", "required"),
        ("postcode", "", "required"),
    ],
)
def test_sentence_is_the_one_of_the_field(till, field, value, code):
    with translation.override("en"):
        expected = str(CheckoutForm().fields[field].error_messages[code])
    assert send(till, field, value) == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "x" * 101),
        ("street", "S 1"),
        ("street", "a\u202eb"),
        ("postcode", "1"),
        ("city", "x" * 81),
    ],
)
def test_sentence_is_the_one_of_the_checkout(till, field, value):
    with translation.override("en"):
        (expected,) = CheckoutForm({**DETAILS, field: value}).errors[field]
    assert send(till, field, value) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"lines": []},
        {"lines": [{"sku": "a b", "quantity": 1}]},
        {"lines": [{"sku": "sku-0", "quantity": "2"}]},
        {"lines": [{"sku": "sku-0", "quantity": 1.5}]},
        {"lines": [{"sku": "sku-0", "quantity": 100}]},
        {"lines": {}},
        {"language": "tlh"},
        {"fairness_key": "a/b"},
        {"expected_total": -1},
        {"address": "Rue"},
        {"colour": "red"},
        {"email": 5},
    ],
)
def test_sentence_of_other_fields_is_plain(till, changes):
    errors(till.place(order=new_order() | changes))


def test_wait_out_of_range_asks_for_no_key(till):
    answer = till.get("status-messages?wait=99")
    assert "wait" in errors(answer)
    assert "20" in errors(answer)["wait"]
