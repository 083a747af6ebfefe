"""The daily run over weeks: what is placed and announced, once, and what it costs."""

from datetime import timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest

from orchestration.models import Submission, Task
from orders.charges import from_json
from orders.lifecycle.message import WORKFLOW
from orders.models import DatedPrice, Order, Product, ShippingPrice, Subscription
from orders.subscriptions import acts, placing, prices, renewal
from orders.subscriptions.days import today
from tests.support.plans import plan
from tests.support.subscriptions import (
    DAY,
    from_now,
    letters,
    orders_of,
    placed_on,
    subscribed,
)

pytestmark = pytest.mark.django_db


def runs():
    return Task.objects.filter(workflow=renewal.RENEWAL).order_by("created_at")


def due(*rows, on=None):
    """Have subscriptions be due since yesterday, or on another day."""
    ids = [row.id for row in rows]
    Subscription.objects.filter(id__in=ids).update(next_on=on or from_now(-1))


def placements():
    return Submission.objects.filter(workflow=WORKFLOW).count()


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


def test_orders_come_at_nine_in_the_shops_zone(run):
    subscribed()
    run.wait(15 * DAY)
    berlin = ZoneInfo("Europe/Berlin")
    assert {task.created_at.astimezone(berlin).hour for task in runs()} == {9}


def test_outage_of_weeks_places_one_order_and_goes_on_in_its_rhythm():
    mine = subscribed()
    due(mine, on=from_now(-20))
    assert renewal.serve(today()).counts["placed"] == 1
    assert renewal.serve(today()).counts["placed"] == 0
    mine.refresh_from_db()
    assert mine.next_on == from_now(8)


def test_day_is_placed_once_however_often_it_is_served():
    mine = subscribed()
    before = placements()
    due(mine)
    renewal.serve(today())
    due(mine)  # as if what was written had been lost
    batch = renewal.serve(today())
    assert (batch.failed, placements()) == ([mine.id], before + 1)


def test_more_than_a_batch_is_served_by_further_tasks(run):
    mine = subscribed()
    Product.objects.update(stock="none")
    values = {name: getattr(mine, name) for name in acts.CHANGEABLE}
    known = {**values, "customer_id": mine.customer_id, "product_id": "sku-0", "language": "en"}
    Subscription.objects.bulk_create(
        Subscription(id=uuid4(), price=1000, next_on=from_now(-1), **known)
        for _ in range(renewal.BATCH + 1)
    )
    run.wait(DAY)
    results = [run.task(renewal.RENEWAL, task.reference).result("renew") for task in runs()]
    assert [result["passed"] for result in results] == [renewal.BATCH, 1]
    first, second = (task.reference for task in runs())
    assert second == f"{first}#2"
    assert not Subscription.objects.filter(next_on__lte=today()).exists()


def test_one_that_fails_holds_up_no_other_and_is_named_to_operators(run):
    rows = sorted([subscribed() for _ in range(3)], key=lambda row: row.id)
    run.go()
    due(*rows)
    broken = Subscription.objects.filter(id=rows[1].id)
    broken.update(product_id="sku-1", price=99_999_999)
    Product.objects.filter(sku="sku-1").update(price=99_999_999)  # two are above the largest total
    run.wait(DAY)
    assert [len(placed_on(row)) for row in rows] == [2, 1, 2]
    assert broken.get().failed_on is not None
    (failed,) = runs().filter(state="error")
    step = run.task(renewal.RENEWAL, failed.reference).step("renew")
    assert step.error_code == renewal.NOT_PLACED
    assert str(rows[1].id) in failed.steps.get().error_message
    run.wait(DAY)  # it is tried again each day, and the others go on
    assert runs().filter(state="error").count() == 2
    acts.end(rows[1].id)


def test_order_has_todays_shipping_and_the_price_that_was_agreed(run):
    mine = subscribed()
    ShippingPrice.objects.create(country="", price=500)
    run.wait(15 * DAY)
    first, second = orders_of(mine)
    assert (first.total, second.total) == (2000, 2500)
    assert from_json(second.charges).shipping == 500


def raised(price, sku="sku-0"):
    DatedPrice.objects.create(product_id=sku, starts_at="2020-01-01T00:00Z", price=price)


def test_higher_price_is_announced_and_charged_after_the_notice(run):
    mine = subscribed()
    run.wait(7 * DAY)
    raised(1300)
    run.wait(8 * DAY)
    (letter,) = letters(mine, "price")
    assert "€13.00" in letter
    assert "€10.00" in letter
    run.wait(14 * DAY)
    assert [order.total for order in orders_of(mine)] == [2000, 2000, 2600]
    run.wait(14 * DAY)
    assert len(letters(mine, "price")) == 1
    mine.refresh_from_db()
    assert (mine.price, mine.new_price) == (1300, None)


def test_price_is_never_charged_before_its_day():
    mine = subscribed()
    raised(1300)
    renewal.serve(today())
    due(mine)
    renewal.serve(from_now(13))
    mine.refresh_from_db()
    assert mine.orders.first().unit_price == 1000
    Subscription.objects.update(next_on=from_now(14))
    renewal.serve(from_now(14))
    assert mine.orders.first().unit_price == 1300


def test_price_that_rises_again_has_a_notice_of_its_own():
    mine = subscribed()
    raised(1300)
    renewal.serve(today())
    DatedPrice.objects.update(price=1500)
    renewal.serve(from_now(10))
    mine.refresh_from_db()
    assert (mine.price, mine.new_price, mine.new_price_from) == (1000, 1500, from_now(24))
    assert len(letters(mine, "price")) == 2


def test_lower_price_applies_at_once_and_the_agreed_one_stays_the_limit(run):
    mine = subscribed()
    raised(800)
    run.wait(15 * DAY)
    DatedPrice.objects.update(price=1000)
    run.wait(14 * DAY)
    assert [order.total for order in orders_of(mine)] == [2000, 1600, 2000]
    assert letters(mine, "price") == []


@pytest.mark.parametrize("change", [{"stock": "none"}, {"active": False}, {"currency": "CHF"}])
def test_product_that_cannot_be_had_is_passed_over_with_a_letter(run, change):
    mine = subscribed()
    Product.objects.filter(sku="sku-0").update(**change)
    run.wait(15 * DAY)
    assert (placed_on(mine), len(letters(mine, "passed"))) == ([0], 1)
    Product.objects.filter(sku="sku-0").update(stock="plenty", active=True, currency="EUR")
    run.wait(14 * DAY)
    assert placed_on(mine) == [0, 28]


def test_paused_and_ended_subscriptions_place_nothing(run):
    paused, ended = subscribed(), subscribed()
    acts.pause(paused.id)
    acts.end(ended.id)
    run.wait(30 * DAY)
    assert placed_on(paused) == placed_on(ended) == [0]
    assert letters(paused, "reminder") == letters(ended, "reminder") == []
    assert (len(letters(paused, "halted")), len(letters(ended, "halted"))) == (0, 1)


def test_skipped_order_is_not_placed_and_the_next_one_is_announced(run):
    mine = subscribed()
    run.wait(12 * DAY)
    mine.refresh_from_db()
    acts.skip(mine.id, mine.next_on)
    run.wait(17 * DAY)
    assert (placed_on(mine), len(letters(mine, "reminder"))) == ([0, 28], 2)


def test_letters_are_in_the_customers_language(run):
    mine = subscribed(language="de")
    run.wait(12 * DAY)
    (letter,) = letters(mine, "reminder")
    assert "20,00\u202f€" in letter


def test_batch_costs_the_same_queries_for_each(django_assert_max_num_queries):
    due(*[subscribed() for _ in range(5)])
    with django_assert_max_num_queries(8 + 5 * 12):
        renewal.serve(today())


def test_what_is_due_is_found_by_indexes():
    due_rows, parameters = renewal.waiting(today()).query.sql_with_params()
    values = {"skus": ["sku-0"], "prices": [1100], "currency": "EUR", "most": 50}
    used = {
        index
        for statement, known in ((due_rows, parameters), (prices.RISEN, values))
        for _, index in plan(statement, known)
    }
    assert {"subscription_due", "subscription_price"} <= used


def test_order_and_its_day_are_named_by_the_same_id():
    mine = subscribed()
    assert mine.orders.get().order == placing.order_id(mine.id, today())
    assert today() - mine.next_on == timedelta(weeks=-2)
    assert not Order.objects.exists()  # the submission process writes it
