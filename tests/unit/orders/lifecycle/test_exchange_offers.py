"""What is offered for goods that come back, and at which price."""

import pytest

from orders.charges import from_json
from orders.handling import NONE
from orders.lifecycle.exchange_offers import Coming, NotExchangeable, TooDear, Wish, offer, read
from orders.lifecycle.message import Line
from orders.models import Order

MUG = Line(sku="mug", name="Mug", unit_price=1000, quantity=2)
TEA = Line(sku="tea", name="Tea", unit_price=1100, quantity=1)
CHARGES = {
    "shipping": 90, "discount": 300, "code": "X", "percent": 0, "rates": {}, "taxes": [],
}  # fmt: skip


def coming(units, amount, *, last=False, charges=None, **of):
    order = Order(total=3100, charges=charges, **of)
    return Coming(order=order, bought=[MUG, TEA], units=units, amount=amount, last=last)


def wish(rates=None, **lines):
    """Return a wish of products, given as mug=(price of now, units)."""
    return Wish(
        lines=[
            Line(sku=sku, name=sku, unit_price=price, quantity=quantity)
            for sku, (price, quantity) in lines.items()
        ],
        rates=rates or {},
        handling=NONE,
    )


def test_same_again_costs_what_was_paid():
    new = offer(wish(mug=(1500, 2)), coming({"mug": 2}, 2000))
    assert (new.total, new.lines[0].unit_price, new.paid.exchange) == (2000, 1000, 2000)


def test_more_of_the_same_than_comes_back_costs_what_it_does_now():
    with pytest.raises(TooDear):
        offer(wish(mug=(1500, 2)), coming({"mug": 1, "tea": 1}, 2100))


@pytest.mark.parametrize("amount", [903, 904])
def test_same_again_has_its_part_of_the_discount(amount):
    new = offer(wish(mug=(1000, 1)), coming({"mug": 1}, amount, charges=CHARGES))
    assert (new.total, new.charges.discount, new.charges.code) == (amount, 1000 - amount, "X")


def test_last_units_take_their_shipping_along():
    all_of_it = coming({"mug": 2, "tea": 1}, 2890, last=True, charges=CHARGES)
    same = offer(wish(mug=(1000, 2), tea=(1100, 1)), all_of_it)
    assert (same.total, same.charges.shipping) == (2890, 90)
    other = offer(wish(pot=(2800, 1)), all_of_it)
    assert (other.total, other.charges.discount) == (2890, 0)
    with pytest.raises(TooDear) as refusal:
        offer(wish(pot=(2801, 1)), all_of_it)
    assert refusal.value.left == 2800


def test_what_came_for_nothing_is_sent_again_for_nothing():
    free = {**CHARGES, "shipping": 0, "discount": 3100}
    new = offer(wish(mug=(1000, 1)), coming({"mug": 1}, 0, charges=free))
    assert (new.total, new.paid) == (0, NONE)


def test_tax_is_that_of_the_new_goods():
    new = offer(wish({"mug": 1900}, mug=(1000, 1)), coming({"mug": 1}, 1000))
    assert [(tax.rate, tax.tax) for tax in new.charges.taxes] == [(1900, 160)]


def test_gift_card_does_not_come_back():
    special = {
        "gift_card": 0, "to_pay": 1, "emailed": ["mug"], "gifts": 1, "made": {},
        "finish_within": None, "reserve": [], "released_at": None,
    }  # fmt: skip
    with pytest.raises(NotExchangeable):
        offer(wish(tea=(1, 1)), coming({"mug": 1}, 1000, handling=special))


def test_offer_is_read_as_it_was_written():
    new = offer(wish({"mug": 1900}, mug=(1000, 2)), coming({"mug": 2}, 1806, charges=CHARGES))
    assert read(new.as_json()) == new
    assert from_json(new.as_json()["charges"]) == new.charges
