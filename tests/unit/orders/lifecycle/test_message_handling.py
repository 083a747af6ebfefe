"""What a message says of gift cards, releases and goods made to order: read back, or refused."""

from datetime import UTC, datetime

import pytest

from orders.handling import NONE, Handling, from_json
from orders.lifecycle.fields import Malformed, NewerFormat
from orders.lifecycle.message import read
from tests.support.shop import message

RELEASED = datetime(2027, 1, 7, 9, tzinfo=UTC)


def sent(**of):
    """Return the JSON of an order of two of sku-0, at 20.00."""
    return message(handling=Handling(**of)).as_json()


@pytest.mark.parametrize(
    "of",
    [
        {"gift_card": 500},
        {"emailed": ("sku-0",), "ships": False},
        {"made": {"sku-0": 14}},
        {"released_at": RELEASED},
        {"gift_card": 1, "made": {"sku-0": 1}, "released_at": RELEASED},
        {"exchange": 500, "made": {"sku-0": 1}},
    ],
)
def test_handling_is_read_as_it_was_written(of):
    data = sent(**of)
    assert read(data).handling == Handling(**of)
    assert read(data).as_json() == data


def test_ordinary_order_says_nothing():
    assert "handling" not in message().as_json()
    assert read(message().as_json()).handling == NONE == from_json(None)


def test_what_the_steps_take_follows_from_the_lines():
    fields = sent(gift_card=500, made={"sku-0": 14})["handling"]
    assert (fields["to_pay"], fields["reserve"], "ships" in fields) == (1500, [], False)
    assert fields["finish_within"] == 14 * 86_400
    emailed = sent(emailed=("sku-0",), ships=False)["handling"]
    assert (emailed["gifts"], emailed["reserve"], emailed["ships"]) == (2000, [], False)


def test_order_that_is_paid_by_a_card_has_no_payment_method():
    whole = message(handling=Handling(gift_card=2000), payment_method="none").as_json()
    assert read(whole).handling.gift_card == 2000
    for wrong in (whole | {"payment_method": "pm_card_visa"}, sent() | {"payment_method": "none"}):
        with pytest.raises(NewerFormat):
            read(wrong)


@pytest.mark.parametrize(
    "change",
    [
        {"gift_card": 2001},
        {"gift_card": -1},
        {"gift_card": True},
        {"exchange": 0},
        {"exchange": 500},
        {"exchange": "500"},
        {"to_pay": 0},
        {"reserve": []},
        {"reserve": [{"sku": "sku-0", "quantity": 9}]},
        {"ships": False},
        {"ships": "yes"},
        {"emailed": ["sku-9"]},
        {"emailed": ["sku-0", "sku-0"]},
        {"emailed": {}},
        {"made": {"sku-9": 1}},
        {"made": {"sku-0": 0}},
        {"made": {"sku-0": 366}},
        {"made": []},
        {"gifts": 1},
        {"finish_within": 1},
        {"released_at": "2027-01-07T09:00:00"},
        {"released_at": "soon"},
        {"released_at": 1},
    ],
)
def test_handling_that_does_not_fit_is_refused(change):
    data = sent(gift_card=500)
    data["handling"] |= change
    with pytest.raises(Malformed):
        read(data)


def test_handling_of_a_later_release_is_left_to_it():
    data = sent(gift_card=500)
    data["handling"]["wrapped"] = True
    with pytest.raises(NewerFormat):
        read(data)


def test_payment_after_a_release_has_days():
    assert sent(released_at=RELEASED)["pay_within"] == 3 * 86_400
