"""The message that describes an order: written and read the same, and nothing malformed gets by."""

import copy
from uuid import UUID

import pytest

from orders.message import (
    Address,
    Line,
    Mail,
    Malformed,
    Message,
    Newer,
    fingerprint,
    order_number,
    read,
)
from orders.money import money

ORDER = UUID("3f2b8a54-0c1d-4e5f-8a6b-7c8d9e0f1a2b")


def message(**changes):
    known = {
        "order": ORDER,
        "email": "ada@example.org",
        "address": Address(
            name="Ada", street="Rue 1", postcode="1203", city="Genève", country="CH"
        ),
        "payment_method": "pm_card_visa",
        "currency": "EUR",
        "total": 2850,
        "lines": [
            Line(sku="a", name="Coffee", unit_price=950, quantity=2),
            Line(sku="b", name="Tea", unit_price=950, quantity=1),
        ],
        "confirmation": Mail(subject="Yes", text="It is."),
    }
    return Message(**{**known, **changes})


def test_what_is_written_is_read():
    assert read(message().as_json()) == message()
    assert read(message(customer=7).as_json()).customer == 7


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["total"], 2849, "its lines add up to 2850"),
        (["total"], "2850", "its lines add up to 2850"),
        (["total"], True, "its lines add up to 2850"),
        (["lines"], [], "between 1 and 50 lines"),
        (["lines"], {}, "between 1 and 50 lines"),
        (["lines", 0], 5, "a line is not an object"),
        (["lines", 0, "quantity"], 0, "from 1 to 99"),
        (["lines", 0, "quantity"], -1, "from 1 to 99"),
        (["lines", 0, "quantity"], 100, "from 1 to 99"),
        (["lines", 0, "quantity"], 1.0, "from 1 to 99"),
        (["lines", 0, "quantity"], "2", "from 1 to 99"),
        (["lines", 0, "quantity"], True, "from 1 to 99"),
        (["lines", 0, "unit_price"], 0, "unit_price is 0"),
        (["lines", 0, "unit_price"], 10**9, "unit_price is 1000000000"),
        (["lines", 0, "sku"], "b", "a product on two lines"),
        (["lines", 0, "sku"], "x" * 41, "longer than 40"),
        (["order"], "7", "is no UUID"),
        (["order"], None, "is no UUID"),
        (["order"], str(ORDER).upper(), "is not written as"),
        (["email"], "ada", "no e-mail address"),
        (["email"], "a da@example.org", "no e-mail address"),
        (["email"], "", "email is empty"),
        (["address"], "Rue 1", "the address is not an object"),
        (["address", "city"], "\0", "not printable"),
        (["payment_method"], ["pm_card_visa"], "its payment method is"),
        (["currency"], 978, "its currency is 978"),
        (["customer"], "root", "customer is 'root'"),
        (["confirmation", "text"], "", "text is empty"),
    ],
)
def test_malformed_messages_are_refused_with_the_reason(path, value, reason):
    with pytest.raises(Malformed, match=reason):
        read(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["surprise"], 1, "the order has parts that this release does not know: surprise"),
        (["lines", 0, "discount"], 1, "does not know: discount"),
        (["address", "planet"], "Earth", "does not know: planet"),
        (["payment_method"], "pm_card_gold", "its payment method 'pm_card_gold' is not one"),
        (["language"], "xx", "its language 'xx' is not one"),
        (["currency"], "USD", "its currency 'USD' is not one"),
    ],
)
def test_what_a_later_release_may_have_added_is_not_malformed(path, value, reason):
    with pytest.raises(Newer, match=reason):
        read(changed(path, value))


def changed(path, value):
    data = copy.deepcopy(message().as_json())
    place = data
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return data


@pytest.mark.parametrize("name", sorted(message().as_json().keys() - {"language"}))
def test_every_part_is_needed(name):
    data = message().as_json()
    del data[name]
    with pytest.raises(Malformed, match=f"the order lacks {name}"):
        read(data)


def test_what_older_versions_wrote_is_read():
    data = message().as_json()
    del data["language"], data["confirmation"]["html"]
    assert read(data) == message()


def test_a_number_is_short_stable_and_easy_to_read_out():
    number = order_number(ORDER)
    assert number == order_number(UUID(str(ORDER)))
    assert len(number) == 11
    assert number[5] == "-"
    assert not set(number) & set("ILOU")


def test_a_fingerprint_does_not_depend_on_the_order_of_names():
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": [1, 2], "a": 1})
    assert fingerprint({"a": 1, "b": [1, 2]}) != fingerprint({"a": 1, "b": [2, 1]})


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (0, "EUR", "€0.00"),
        (5, "EUR", "€0.05"),
        (123450, "EUR", "€1,234.50"),
        (999, "CHF", "CHF 9.99"),
        (-250, "EUR", "-€2.50"),
    ],
)
def test_money(amount, currency, text):
    assert money(amount, currency) == text
