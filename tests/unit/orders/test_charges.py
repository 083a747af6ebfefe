"""What an order costs beyond its lines: sums are exact, with any rates and in any currency."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orders.charges import NONE, Charges, Discount, Tax, charge, distribute, from_json, included


@dataclass(frozen=True)
class Goods:
    sku: str
    price: int


MIXED = [Goods("tea", 1070), Goods("mug", 1190)]
RATES = {"tea": 700, "mug": 1900}


def test_tax_is_in_the_price_by_rate():
    charges = charge(MIXED, rates=RATES)
    assert charges.taxes == (
        Tax(rate=1900, net=1000, tax=190),
        Tax(rate=700, net=1000, tax=70),
    )
    assert charges.tax == 260


def test_tax_is_rounded_half_up():
    assert included(2500, 2) == Tax(rate=2500, net=2, tax=0)
    assert included(10000, 1) == Tax(rate=10000, net=0, tax=1)
    assert included(550, 950) == Tax(rate=550, net=900, tax=50)


def test_shipping_and_discount_bear_the_rates_of_the_goods():
    goods = [Goods("tea", 1000), Goods("mug", 3000)]
    charges = charge(goods, shipping=400, discount=Discount(code="A", amount=800), rates=RATES)
    assert [tax.gross for tax in charges.taxes] == [2700, 900]
    assert charges.extra == -400


def test_goods_without_a_rate_have_no_tax():
    assert charge(MIXED, rates={"tea": 0}) == NONE
    assert [tax.gross for tax in charge(MIXED, rates={"tea": 700}).taxes] == [1070]


@pytest.mark.parametrize(
    ("discount", "off"),
    [
        (Discount(percent=1000), 226),
        (Discount(percent=3333), 753),
        (Discount(amount=500), 500),
        (Discount(amount=9999), 2260),  # an order may be free
    ],
)
def test_discount_takes_off(discount, off):
    assert charge(MIXED, discount=discount, rates={}).discount == off


def test_discount_of_an_amount_leaves_shipping_to_pay():
    charges = charge(MIXED, shipping=490, discount=Discount(amount=9999), rates={})
    assert (charges.discount, charges.extra) == (2260, -1770)


def test_charges_of_fewer_lines_keep_what_was_agreed():
    agreed = Discount(code="A", percent=1000)
    before = charge(MIXED, shipping=490, discount=agreed, rates=RATES)
    after = before.of_fewer(MIXED[:1])
    assert (after.shipping, after.discount, after.code) == (490, 107, "A")
    assert after.rates == {"tea": 700}
    assert [tax.gross for tax in after.taxes] == [1070 + 490 - 107]


def test_order_that_was_paid_does_not_become_free_with_fewer_lines():
    before = charge(MIXED, discount=Discount(code="A", amount=2000), rates={})
    assert before.of_fewer(MIXED[:1]).discount == 1069
    free = charge(MIXED, discount=Discount(code="A", percent=10000), rates={})
    assert free.of_fewer(MIXED[:1], free=True).discount == 1070


def test_what_is_emailed_has_no_part_in_shipping():
    charges = charge(MIXED, shipping=490, rates=RATES, emailed={MIXED[0].sku})
    assert [tax.gross for tax in charges.taxes] == [1190 + 490, 1070]


def test_charges_round_trip():
    charges = charge(MIXED, shipping=490, discount=Discount(code="A", amount=5), rates=RATES)
    assert from_json(charges.as_json()) == charges
    assert (NONE.as_json(), from_json(None), from_json({})) == ({}, NONE, NONE)


@given(
    st.lists(
        st.tuples(st.integers(1, 10**7), st.sampled_from([0, 500, 700, 1900, 2550])), min_size=1
    ),
    st.integers(0, 10**6),
    st.integers(0, 10**8),
)
def test_sums_are_exact(goods, shipping, amount):
    lines = [Goods(str(number), price) for number, (price, _) in enumerate(goods)]
    rates = {str(number): rate for number, (_, rate) in enumerate(goods)}
    charges = charge(lines, shipping=shipping, discount=Discount(amount=amount), rates=rates)
    total = sum(line.price for line in lines) + charges.extra
    assert total >= 0
    gross = sum(tax.gross for tax in charges.taxes)
    assert gross <= total
    if all(rates.values()):
        assert gross == total
    for tax in charges.taxes:
        assert tax.net >= 0
        assert abs(tax.gross * tax.rate - tax.tax * (10000 + tax.rate)) * 2 <= 10000 + tax.rate


@given(st.integers(-(10**6), 10**6), st.lists(st.integers(1, 10**4), min_size=1))
def test_distributed_shares_add_up(amount, weights):
    shares = distribute(amount, weights)
    assert sum(shares) == amount
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - amount * weight / sum(weights)) <= 1


def test_charges_without_anything_are_none():
    assert Charges(rates={}) == NONE
