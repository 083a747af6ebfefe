"""What units that come back are worth, and how many are left."""

import pytest

from orders.lifecycle.message import Line
from orders.lifecycle.returns import left_of, worth
from orders.models import Order, Return
from orders.models.returned import ReturnState

MUG = Line(sku="mug", name="Mug", unit_price=1000, quantity=2)
TEA = Line(sku="tea", name="Tea", unit_price=1100, quantity=1)
DISCOUNTED = {
    "shipping": 90, "discount": 300, "code": "X", "percent": 0, "rates": {}, "taxes": [],
}  # fmt: skip


def back(amount=0, state=ReturnState.AWAITED, **units):
    lines = [{"sku": sku, "name": sku, "quantity": count} for sku, count in units.items()]
    return Return(lines=lines, amount=amount, state=state)


def test_units_that_came_back_are_not_left_but_those_of_lapsed_returns():
    known = [back(mug=1), back(state=ReturnState.LAPSED, mug=1, tea=1)]
    assert left_of([MUG, TEA], known) == {"mug": 1, "tea": 1}


@pytest.mark.parametrize("order", [["mug", "mug", "tea"], ["tea", "mug", "mug"]])
def test_all_units_one_by_one_are_worth_the_total(order):
    known = []
    for sku in order:
        amount = worth(Order(total=2890, charges=DISCOUNTED), [MUG, TEA], known, {sku: 1})
        known.append(back(amount, **{sku: 1}))
    amounts = [row.amount for row in known]
    assert sum(amounts) == 2890
    assert amounts[0] == {"mug": 1000, "tea": 1100}[order[0]] * 2800 // 3100


def test_part_without_charges_is_worth_its_price():
    assert worth(Order(total=3100), [MUG, TEA], [], {"mug": 2}) == 2000


def test_lapsed_return_leaves_its_amount():
    known = [back(3100, ReturnState.LAPSED, mug=2, tea=1)]
    assert worth(Order(total=3100), [MUG, TEA], known, {"mug": 2, "tea": 1}) == 3100
