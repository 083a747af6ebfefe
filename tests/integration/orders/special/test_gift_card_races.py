"""Gift cards that several orders use at once: never more than is on them."""

import threading
from functools import partial
from uuid import uuid4

import pytest
from django.db import IntegrityError

from orders.handling import Handling
from orders.lifecycle import gift_cards, placement
from orders.models import GiftCard, GiftUse, Placement
from tests.support.gifts import issued
from tests.support.shop import message, products
from tests.support.together import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _shelf():
    products()


def balance():
    return GiftCard.objects.get().balance


def pay_all(code, order):
    handling = Handling(gift_card=1500)
    try:
        placement.place(message(order, handling=handling), "a" * 64, gift_card=code)
    except gift_cards.NotValid:
        return "refused"
    return "placed"


@pytest.mark.django_db(transaction=True)
def test_many_at_once_never_take_more_than_is_on_the_card():
    card = issued(4000)
    acts = {number: partial(pay_all, card.unsent, uuid4()) for number in range(6)}
    assert sorted(at_once(acts).values()) == ["placed"] * 2 + ["refused"] * 4
    assert (balance(), GiftUse.objects.count(), Placement.objects.count()) == (1000, 2, 2)


class Unlocked:
    """A card's row that two orders read before either takes anything."""

    both = threading.Barrier(2)

    def __init__(self, rows):
        self.rows = rows

    def values_list(self, *names):
        return Unlocked(self.rows.values_list(*names))

    def first(self):
        row = self.rows.first()
        self.both.wait(10)
        return row


@pytest.mark.django_db(transaction=True)
def test_without_the_lock_the_database_refuses_what_is_not_on_the_card(monkeypatch):
    """What the test above shows is the lock's doing; the check of the row is the last resort."""
    monkeypatch.setattr(gift_cards, "locked", Unlocked)
    card = issued(1500)

    def pay():
        try:
            return pay_all(card.unsent, uuid4())
        except IntegrityError:
            return "beyond the balance"

    assert sorted(at_once({1: pay, 2: pay}).values()) == ["beyond the balance", "placed"]
    assert (balance(), GiftUse.objects.count(), Placement.objects.count()) == (0, 1, 1)
