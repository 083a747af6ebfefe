"""What happens at the same moment: acts of the customer, double clicks, and the daily run."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

import pytest
from django.db import connection, connections, transaction

from orders.models import Placement, Product, Subscription
from orders.subscriptions import acts, renewal
from orders.subscriptions.days import today
from tests.support.customers import confirmed
from tests.support.subscriptions import ADDRESS, from_now, subscribed
from tests.support.together import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def together(times, function):
    """Call a function several times at once; return what it returns, or that the page was older."""

    def outcome():
        try:
            return function()
        except acts.Outdated as error:
            return error

    return list(at_once(dict.fromkeys(range(times), outcome)).values())


@pytest.fixture
def due():
    mine = subscribed()
    Subscription.objects.update(next_on=from_now(-1))
    mine.refresh_from_db()
    return mine


def waits_for_lock():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction sees the first one else
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone()[0]


@pytest.mark.parametrize("do", ["skip", "pause", "end"])
def test_act_under_way_has_the_daily_run_wait_and_place_nothing(due, do):
    """Fails without the lock of the run: it reads the row as it was, and places its order."""
    acted = {"skip": lambda: acts.skip(due.id, due.next_on), "pause": lambda: acts.pause(due.id)}

    def run():
        try:
            return renewal.serve(today())
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            acted.get(do, lambda: acts.end(due.id))()
            served = pool.submit(run)
            while not waits_for_lock():
                assert not served.done(), "the run did not wait"
        assert served.result().counts["placed"] == 0
    assert due.orders.count() == 1


def test_act_that_waits_for_the_daily_run_is_outdated(due):
    """Fails without the lock of the act: it skips an order that is placed."""

    def skip():
        try:
            with suppress(acts.Outdated):
                return acts.skip(due.id, due.next_on)
        finally:
            connections.close_all()
        return None

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert renewal.serve(today()).counts["placed"] == 1
            skipped = pool.submit(skip)
            while not waits_for_lock():
                assert not skipped.done(), "the act did not wait"
        assert skipped.result() is None
    due.refresh_from_db()
    assert (due.orders.count(), due.next_on) == (2, from_now(13))


def test_daily_runs_at_once_place_each_order_once():
    rows = [subscribed() for _ in range(6)]
    Subscription.objects.update(next_on=from_now(-1))
    before = Placement.objects.count()
    batches = together(3, lambda: renewal.serve(today()))
    assert sum(batch.counts["placed"] for batch in batches) == len(rows)
    assert all(not batch.failed for batch in batches)
    assert Placement.objects.count() == before + len(rows)


def test_double_click_skips_once(due):
    Subscription.objects.update(next_on=from_now(7))
    results = together(4, lambda: acts.skip(due.id, from_now(7)))
    assert sum(isinstance(result, Subscription) for result in results) == 1
    due.refresh_from_db()
    assert due.next_on == from_now(21)


def test_double_click_subscribes_once():
    product, id_ = Product.objects.get(sku="sku-0"), uuid4()
    values = {
        **ADDRESS, "customer": confirmed("ada@example.org"), "email": "ada@example.org",
        "quantity": 1, "weeks": 2, "language": "en", "payment_method": "pm_card_visa",
    }  # fmt: skip
    results = together(4, lambda: acts.subscribe(id_, product, 1000, values))
    assert {row.id for row in results} == {id_}
    assert (Subscription.objects.count(), Placement.objects.count()) == (1, 1)
