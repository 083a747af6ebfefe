"""The audit of removals: violations are planted, and found by its checks."""

from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest

from orchestration.agents.service_ledger import LedgerEntry
from orchestration.testing.outcomes import later
from orchestration.testing.run import running
from orders.lifecycle import removing
from orders.models import Refund
from tests.support.gifts import order_of
from tests.support.shop import products
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db
AWAITED = later({"id": "pi_1", "status": "x"}, id="pi_1", look=86_400)
TAKEN = {"id": "pi_1", "status": "succeeded", "taken": True}


@pytest.fixture
def removed(client):
    """An order paid by transfer, from which one unit of two was removed before."""
    products()
    with running() as run:
        run.script("payment.authorize", AWAITED)
        order = order_of(client, payment_method="customer_balance")
        run.go()
        id_ = uuid4()
        removing.remove(order, {"sku-0": 1}, id_=id_)
        run.go()
        run.complete(run.task("process_order", str(order)), "authorize_payment", TAKEN)
        run.go()
        run.wait(2)
        (call,) = run.calls("inventory.release_part")
        (reserved,) = run.calls("inventory.reserve")
        yield SimpleNamespace(order=str(order), id=str(id_), key=call.key, reserved=reserved.key)


def problems(removed, of, ledger=None):
    rows = SimpleNamespace(ledger={"inventory": ledger}) if ledger is not None else None
    return [known.problem for known in violations(rows) if known.reference == of]


def released(removed, goods, kind="release_part"):
    """Return what the inventory did by its ledger, with other goods freed."""
    return [
        LedgerEntry(key=removed.reserved, reference=removed.order, kind="reserve",
                    detail={"sku-0": 2}, result={"id": "r"}),
        LedgerEntry(key=removed.key, reference=removed.order, kind=kind, detail=goods,
                    result={"id": "r"}),
    ]  # fmt: skip


def test_all_is_well(removed):
    assert problems(removed, removed.id, released(removed, {"sku-0": 1})) == []
    assert problems(removed, removed.order, released(removed, {"sku-0": 1})) == []


@pytest.mark.parametrize("goods", [{"sku-0": 2}, {"sku-1": 1}])
def test_other_units_than_were_removed(removed, goods):
    (problem,) = problems(removed, removed.id, released(removed, goods))
    assert "the inventory released" in problem


def test_units_that_were_never_released(removed):
    (problem,) = problems(removed, removed.id, released(removed, None, kind="none"))
    assert "nothing" in problem


def test_removal_without_a_task(removed):
    other = str(uuid4())
    plant(
        "INSERT INTO orders_removal (id, order_id, lines, released, amount, created_at) VALUES"
        " (%(id)s, %(order)s, '[]', '[]', 0, clock_timestamp() - interval '5 minutes')",
        id=other,
        order=removed.order,
    )
    (problem,) = problems(removed, other)
    assert "neither a task" in problem


def test_transfer_that_was_too_much_and_does_not_go_back(removed):
    assert Refund.objects.get(order=UUID(removed.order)).overpaid
    plant("UPDATE orders_refund SET state = 'undone' WHERE order_id = %(id)s", id=removed.order)
    assert any("transfer" in problem for problem in problems(removed, removed.order))


def test_total_that_differs_from_what_is_left(removed):
    plant("UPDATE orders_order SET total = total + 1 WHERE id = %(id)s", id=removed.order)
    assert any("its task 1000" in problem for problem in problems(removed, removed.order))
