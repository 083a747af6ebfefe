"""An order and its task are written in one transaction (P19), as another session sees it."""

import pytest
from django.db import Error, connection

from orchestration import submission
from orchestration.workers import jobs
from orders.models import Order
from tests.support.database import another, commits_fail, killed_before, writes_fail
from tests.support.engine import staff
from tests.support.shop import buy, products

pytestmark = pytest.mark.django_db(transaction=True)

# Counts of one order's rows and lines, tasks, steps and submissions.
SEEN = """
SELECT (SELECT count(*) FROM orders_order WHERE id = %(order)s::uuid),
    (SELECT count(*) FROM orders_orderline WHERE order_id = %(order)s::uuid),
    (SELECT count(*) FROM orchestration_task WHERE reference = %(order)s),
    (SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
        WHERE t.reference = %(order)s),
    (SELECT count(*) FROM orchestration_submission WHERE reference = %(order)s)
"""
NEITHER, BOTH = (0, 0, 0, 0, 1), (1, 1, 1, 7, 0)


@pytest.fixture
def order(client):
    staff()
    products()
    return str(buy(client, sku_0=2))


def seen(order):
    """Return what another session sees of an order."""
    with another() as cursor:
        cursor.execute(SEEN, {"order": order})
        return cursor.fetchone()


@pytest.mark.parametrize("table", ["orders_order", "orders_orderline", "orchestration_task",
                                   "orchestration_step", "orchestration_statusmessage"])  # fmt: skip
@pytest.mark.parametrize("fails", [writes_fail, commits_fail])
def test_failed_write_of_either_leaves_neither(order, table, fails):
    with fails(table, "INSERT", "57014" if fails is writes_fail else "40001"):
        submission.take(10)
        assert seen(order) == NEITHER
    connection.close()
    jobs.take_submissions()
    if seen(order) == NEITHER:  # waits for its retry
        with another() as cursor:
            cursor.execute("UPDATE orchestration_submission SET retry_at = clock_timestamp()")
        jobs.take_submissions()
    assert seen(order) == BOTH


def test_session_killed_before_any_statement_leaves_both_or_neither(order):
    outcomes = set()
    for number in range(1, 100):
        with killed_before(number) as killing:
            try:
                submission.take(10)
            except Error:
                connection.close()
        outcomes.add(seen(order))
        if not killing.reached:
            break
    assert outcomes == {NEITHER, BOTH}
    assert number > 5, "the transaction has more statements than that"
    assert Order.objects.count() == 1
