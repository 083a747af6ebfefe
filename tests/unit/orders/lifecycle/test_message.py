"""The message that describes an order: writing, reading and refusing it."""

import copy
from uuid import UUID

import pytest

from orders.charges import NONE, Discount, charge
from orders.lifecycle.fields import Malformed, NewerFormat
from orders.lifecycle.message import (
    Address,
    Line,
    Mail,
    Message,
    fingerprint,
    order_number,
    read,
)

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


def test_message_round_trip():
    assert read(message().as_json()) == message()
    assert read(message(customer=7).as_json()).customer == 7


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["total"], 2849, "but the lines add up to 2850"),
        (["total"], "2850", "but the lines add up to 2850"),
        (["total"], True, "but the lines add up to 2850"),
        (["lines"], [], "list of 1 to 50"),
        (["lines"], {}, "list of 1 to 50"),
        (["lines", 0], 5, "a line is not an object"),
        (["lines", 0, "quantity"], 0, "from 1 to 99"),
        (["lines", 0, "quantity"], -1, "from 1 to 99"),
        (["lines", 0, "quantity"], 100, "from 1 to 99"),
        (["lines", 0, "quantity"], 1.0, "from 1 to 99"),
        (["lines", 0, "quantity"], "2", "from 1 to 99"),
        (["lines", 0, "quantity"], True, "from 1 to 99"),
        (["lines", 0, "unit_price"], 0, "unit_price is 0"),
        (["lines", 0, "unit_price"], 10**9, "unit_price is 1000000000"),
        (["lines", 0, "sku"], "b", "a product is on two lines"),
        (["lines", 0, "sku"], "x" * 41, "longer than 40"),
        (["order"], "7", "is not a UUID"),
        (["order"], None, "is not a UUID"),
        (["order"], str(ORDER).upper(), "is not in the form"),
        (["email"], "ada", "not an e-mail address"),
        (["email"], "a da@example.org", "not an e-mail address"),
        (["email"], "", "email is empty"),
        (["address"], "Rue 1", "the address is not an object"),
        (["address", "city"], "\0", "not printable"),
        (["payment_method"], ["pm_card_visa"], "payment method is"),
        (["currency"], 978, "currency is 978"),
        (["customer"], "root", "customer is 'root'"),
        (["confirmation", "text"], "", "text is empty"),
    ],
)
def test_message_malformed_gives_the_reason(path, value, reason):
    with pytest.raises(Malformed, match=reason):
        read(changed(path, value))


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (["surprise"], 1, "the order has fields unknown to this release: surprise"),
        (["lines", 0, "discount"], 1, "unknown to this release: discount"),
        (["address", "planet"], "Earth", "unknown to this release: planet"),
        (["payment_method"], "pm_card_gold", "payment method 'pm_card_gold' is unknown"),
        (["language"], "xx", "language 'xx' is unknown"),
        (["currency"], "USD", "currency 'USD' is unknown"),
    ],
)
def test_message_of_a_newer_release_is_not_malformed(path, value, reason):
    with pytest.raises(NewerFormat, match=reason):
        read(changed(path, value))


def changed(path, value):
    data = copy.deepcopy(message().as_json())
    place = data
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return data


@pytest.mark.parametrize("name", sorted(message().as_json().keys() - {"language"}))
def test_message_without_a_field(name):
    data = message().as_json()
    del data[name]
    with pytest.raises(Malformed, match=f"the order lacks {name}"):
        read(data)


def test_message_of_an_older_release():
    data = message().as_json()
    del data["language"], data["confirmation"]["html"]
    assert read(data) == message()


def test_order_number_is_short_and_stable():
    number = order_number(ORDER)
    assert number == order_number(UUID(str(ORDER)))
    assert len(number) == 11
    assert number[5] == "-"
    assert not set(number) & set("ILOU")


def test_fingerprint_ignores_the_order_of_keys():
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": [1, 2], "a": 1})
    assert fingerprint({"a": 1, "b": [1, 2]}) != fingerprint({"a": 1, "b": [2, 1]})


def test_address_is_written_as_the_former_release_reads_it():
    plain = message().as_json()["address"]
    assert set(plain) == {"name", "street", "postcode", "city", "country"}
    spanish = Address(
        name="Ada", street="Calle 1", postcode="28001", city="Madrid", country="ES", region="M"
    )
    assert message(address=spanish).as_json()["address"]["region"] == "M"
    assert read(message(address=spanish).as_json()).address == spanish


def test_postcode_may_be_missing_where_the_country_allows_it():
    irish = Address(name="Ada", street="Old Rectory", postcode="", city="Cork", country="IE")
    data = message(address=irish).as_json()
    assert "region" in data["address"]  # the former release leaves it to a newer one
    assert read(data).address == irish
    data["address"]["country"] = "DE"
    with pytest.raises(Malformed, match="postcode"):
        read(data)


def charged(**changes):
    """Return the JSON of an order with shipping, a discount and tax."""
    lines = message().lines
    discount = Discount(code="WELCOME", percent=1000)
    charges = charge(lines, shipping=490, discount=discount, rates={"a": 1900, "b": 700})
    sent = message(charges=charges, total=2850 + 490 - 285).as_json()
    sent["charges"] = {**sent["charges"], **changes}
    return sent


def test_message_with_charges_round_trip():
    sent = charged()
    assert read(sent).as_json() == sent
    assert [tax.rate for tax in read(sent).charges.taxes] == [1900, 700]


def test_message_without_charges_is_as_the_former_release_reads_it():
    assert "charges" not in message().as_json()
    assert read(message().as_json()).charges == NONE


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"shipping": 491}, "taxes are"),
        ({"shipping": -1}, "shipping is -1"),
        ({"shipping": "490"}, "shipping is '490'"),
        ({"discount": 2851}, "discount is 2851"),
        ({"discount": 0}, "taxes are"),
        ({"code": ""}, "code is empty"),
        ({"code": "x" * 31}, "code is longer than 30"),
        ({"percent": 10001}, "percent is 10001"),
        ({"rates": {"a": 1900, "c": 700}}, "products on the lines"),
        ({"rates": {"a": 0}}, "rate is 0"),
        ({"rates": []}, "products on the lines"),
        ({"taxes": []}, "taxes are"),
        ({"taxes": {}}, "must be a list"),
        ({"taxes": [{"rate": 1900, "net": 1, "tax": 1}]}, "taxes are"),
        ({"taxes": [{"rate": 1900, "net": 1}]}, "a tax lacks tax"),
        ({"taxes": [{"rate": 1900, "net": True, "tax": 1}]}, "net is True"),
    ],
)
def test_charges_malformed_give_the_reason(changes, reason):
    with pytest.raises(Malformed, match=reason):
        read(charged(**changes))


def test_total_has_to_be_lines_and_charges():
    sent = charged()
    sent["total"] = 2850
    with pytest.raises(Malformed, match="add up to 3055 with shipping and discount"):
        read(sent)


def test_charges_of_a_newer_release_are_not_malformed():
    with pytest.raises(NewerFormat, match="unknown to this release: gift"):
        read(charged(gift=1))
