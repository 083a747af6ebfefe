"""The audit's checks of gift cards: each finds what is planted."""

import pytest
from django.db import IntegrityError, connection, transaction

from orchestration.assurance.audit import runner, snapshot
from orders.models import GiftCard, GiftUse
from tests.support.gifts import gift_card_product, issued, order_of
from tests.support.shop import carry_out, finish_all, products

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _orders(client):
    """Two completed orders: one bought gift cards, the other was paid in part by one."""
    products()
    gift_card_product()
    order_of(client, {"gift": 2})
    order_of(client, gift_card=issued(1500).unsent)
    carry_out()
    finish_all()
    assert violations() == []


def violations():
    """Return what the audit finds of gift cards, without the partners' ledgers."""
    snapshot.fill(snapshot.prepare())
    problems = [violation.problem for violation in runner.find()]
    return [problem for problem in problems if "gift card" in problem]


def planted(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        assert cursor.rowcount
    return violations()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE orders_giftcard SET balance = balance + 1, amount = amount + 2",
        "UPDATE orders_giftcard SET withdrawn = 1",
        "UPDATE orders_giftuse SET amount = amount - 1",
        "UPDATE orders_giftuse SET returned = 5",
        "DELETE FROM orders_giftuse",
        "DELETE FROM orders_giftcard WHERE unit = 2",
        "UPDATE orders_giftcard SET void = true, withdrawn = amount, balance = 0 WHERE sku = 'gift'",
        "UPDATE orders_order SET handling = '{\"gift_card\": 1}' WHERE handling->>'gifts' = '0'",
    ],
)
def test_planted_violation_is_found(statement):
    assert planted(statement)


def test_balance_below_nothing_is_refused_by_the_database():
    for change in ({"balance": -1}, {"balance": 10_000}, {"amount": 0, "balance": 0}):
        with pytest.raises(IntegrityError), transaction.atomic():
            GiftCard.objects.filter(sku="gift").update(**change)
    with pytest.raises(IntegrityError), transaction.atomic():
        GiftUse.objects.update(returned=1501)
