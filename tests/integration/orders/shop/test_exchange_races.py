"""Exchanges that meet refunds: together never above what was taken."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import connections, transaction

from orchestration import api
from orders.lifecycle import refunds, returns, snapshots
from orders.models import Exchange, Order, Refund, Return
from orders.shop.exchange_wish import wish
from tests.support.database import another
from tests.support.shop import buy, carry_out, finish_all

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("shelf")]
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
SOUND = {"percent": 100, "restock": True, "note": ""}


def message(order, row):
    """Return the message that a return has ended, its goods sound."""
    progress = snapshots.of(order)
    seen = replace(progress.steps[0], name="inspect_goods", result=SOUND)
    return api.Status(
        workflow="return_order", reference=str(row.id), number=9, kind=api.StatusKind.COMPLETED,
        at=row.created_at, detail={}, progress=replace(progress, steps=(seen,)),
    )  # fmt: skip


@pytest.fixture
def order(client):
    """A completed order of two of sku-0, at 20.00."""
    placed = buy(client)
    carry_out()
    finish_all()
    return Order.objects.get(id=placed)


@pytest.fixture
def asked(order):
    return returns.ask(
        order.id, {"sku-0": 2}, "damaged", id_=uuid4(), wish=wish({"sku-0": 2}, "CH")
    )


def apply(status):
    try:
        with transaction.atomic():
            returns.receive([status])
    finally:
        connections.close_all()


def test_exchange_waits_for_a_refund_and_sees_it(order, asked):
    """Fails without the lock of the payer's row: the exchange reads what is left before the refund."""
    with another() as cursor, ThreadPoolExecutor(1) as pool:
        cursor.execute("BEGIN")
        cursor.execute(
            "SELECT 1 FROM orders_order WHERE id = %s FOR NO KEY UPDATE", [str(order.id)]
        )
        cursor.execute(
            "INSERT INTO orders_refund (id, order_id, amount, reason, state) "
            "VALUES (gen_random_uuid(), %s, 1500, 'A chip.', 'asked')",
            [str(order.id)],
        )
        applied = pool.submit(apply, message(order, asked))
        with another() as watch:
            waits = 0
            while not waits and not applied.done():
                watch.execute(WAITS)
                waits = watch.fetchone()[0]
        cursor.execute("COMMIT")
        applied.result()
    asked.refresh_from_db()
    assert (asked.state, asked.paid) == ("refunded", 500)
    assert not Exchange.objects.exists()


def test_refunds_and_an_exchange_at_once_are_never_above_what_was_taken(order, asked):
    ended = message(order, asked)

    def attempt(number):
        try:
            if number == 1:
                return apply(ended)
            refunds.refund(order.id, 1500, "A chip.", id_=uuid4(), by=None)
        except refunds.TooMuch:
            pass
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(attempt, range(4)))
    paid = sum(Refund.objects.values_list("amount", flat=True))
    assert paid + sum(exchange.left for exchange in Exchange.objects.all()) == 2000


def test_replacement_is_placed_once_though_two_receivers_have_the_message(order, asked):
    """The lock has the second receiver see that the return has ended."""
    ended = message(order, asked)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(apply, [ended, ended]))
    assert Exchange.objects.count() == 1
    assert Return.objects.get().state == "replaced"
