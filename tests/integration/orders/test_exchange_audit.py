"""The audit of exchanges: violations are planted, and found by its checks."""

import pytest

from orchestration.testing.outcomes import done
from orchestration.testing.run import running
from tests.support.exchanges import ask, exchanged
from tests.support.shop import fill_cart, open_checkout, order_in, products, send
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(client):
    """A return of one of two, whose replacement is sent."""
    products()
    with running() as run:
        run.script("shipping.label", done(id="lbl_1", tracking="RET1"))
        fill_cart(client, sku_0=2)
        order = order_in(send(client, open_checkout(client)))
        run.go()
        row, _new = exchanged(run, order, {"sku_0": 1}, {"sku_0": 1})
        run.go()
        yield row


def breaches():
    return {(breach.invariant, breach.reference) for breach in violations()}


def test_exchange_is_sound(row):
    assert breaches() == set()
    assert row.state == "replaced"


@pytest.mark.parametrize(
    ("statement", "invariant", "of"),
    [
        ("UPDATE orders_return SET state = 'refunded' WHERE id = %(id)s", 1, "id"),
        ("DELETE FROM orders_exchange WHERE of_id = %(id)s", 1, "id"),
        ('DELETE FROM orders_placement WHERE "order" = %(new)s', 1, "id"),
        ("UPDATE orders_exchange SET amount = 999 WHERE of_id = %(id)s", 3, "new"),
        ("UPDATE orders_order SET handling = NULL WHERE id = %(new)s", 3, "new"),
        ("UPDATE orders_order SET total = 500 WHERE id = %(payer)s", 3, "payer"),
        ("UPDATE orders_exchange SET amount = 2001 WHERE of_id = %(id)s", 3, "payer"),
    ],
)
def test_planted_violation_is_found(row, statement, invariant, of):
    ids = {"id": row.id, "new": row.replacement, "payer": row.order_id}
    plant(statement, **ids)
    assert (invariant, str(ids[of])) in breaches()


def test_undone_replacement_that_is_not_paid_back(row):
    plant("UPDATE orders_order SET status = 'undone' WHERE id = %(new)s", new=row.replacement)
    assert (3, str(row.replacement)) in breaches()


def test_exchange_under_way_is_sound(client):
    products()
    with running() as run:
        run.script("shipping.label", done(id="lbl_1", tracking="RET1"))
        fill_cart(client, sku_0=2)
        order = order_in(send(client, open_checkout(client)))
        run.go()
        ask(order, {"sku_0": 1}, {"sku_0": 1})
        run.go()
        assert breaches() == set()
