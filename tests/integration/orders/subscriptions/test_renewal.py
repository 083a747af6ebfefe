"""The daily run over weeks: what is placed and announced, once, and what it costs."""

import pytest

from orchestration.models import Task
from orders.models import Subscription
from orders.subscriptions import renewal
from orders.subscriptions.days import today
from tests.support.subscriptions import (
    DAY,
    from_now,
    letters,
    orders_of,
    placed_on,
    shelf,
    subscribed,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelves")]


@pytest.fixture
def shelves(db):
    shelf()


def runs():
    return Task.objects.filter(workflow=renewal.RENEWAL)


def test_orders_come_every_two_weeks_and_are_announced_three_days_before(run):
    mine = subscribed()
    run.go()
    assert (placed_on(mine), len(letters(mine, "begun"))) == ([0], 1)
    run.wait(10 * DAY)
    assert letters(mine, "reminder") == []
    run.wait(2 * DAY)
    (letter,) = letters(mine, "reminder")
    assert "€20.00" in letter
    run.wait(17 * DAY)
    assert (placed_on(mine), len(letters(mine, "reminder"))) == ([0, 14, 28], 2)
    assert {order.status for order in orders_of(mine)} == {"confirmed"}
    assert {order.customer_id for order in orders_of(mine)} == {mine.customer_id}
    assert set(runs().values_list("state", flat=True)) == {"processed"}


def test_four_weeks_are_four_weeks(run):
    mine = subscribed(weeks=4)
    run.wait(57 * DAY)
    assert placed_on(mine) == [0, 28, 56]


def test_outage_of_weeks_places_one_order_and_goes_on_in_its_rhythm(run):
    mine = subscribed()
    Subscription.objects.update(next_on=from_now(-20))
    assert renewal.serve(today()).counts["placed"] == 1
    assert renewal.serve(today()).counts["placed"] == 0
    mine.refresh_from_db()
    assert mine.next_on == from_now(8)
