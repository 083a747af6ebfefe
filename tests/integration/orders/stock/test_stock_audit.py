"""The audit of the stock: violations are planted, and found by its checks."""

import time
from types import SimpleNamespace
from uuid import uuid4

import pytest

from orchestration.agents.service_ledger import LedgerEntry
from orchestration.testing.outcomes import done, rejected
from orchestration.testing.run import running
from orders.agents import partner_ledger
from orders.models.stock import CorrectionKind
from orders.stock.corrections import Correction, correct
from tests.support.stock import read
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db


@pytest.fixture
def made():
    """A count of 12 where 15 were, which the inventory made."""
    with running() as run:
        run.script("inventory.adjust", done(id="adj_1", change=-3))
        run.script("inventory.levels", rejected("not_read"))
        asked = Correction(
            id=uuid4(), sku="sku-0", warehouse="main", kind=CorrectionKind.COUNTED, units=12,
            expected=15, reason="May.",
        )  # fmt: skip
        correct(asked, by=None, name="boss")
        run.go()
        run.wait(2)
        (call,) = run.calls("inventory.adjust")
        yield SimpleNamespace(id=str(asked.id), key=call.key)


def adjusted(made, change=-3, warehouse="main", key=None):
    detail = {"sku": "sku-0", "warehouse": warehouse, "change": change}
    return LedgerEntry(
        key=key or made.key, kind="adjust", detail=detail, result={"id": "adj_1", "change": change}
    )


def breaches(ledger=None):
    rows = SimpleNamespace(ledger={"inventory": ledger}) if ledger is not None else None
    return [(breach.reference, breach.problem) for breach in violations(rows)]


def level(on_hand=9, reserved=1, moved=-60.0):
    now = time.time()
    counts = {"start": on_hand + reserved, "on_hand": on_hand, "reserved": reserved, "shipped": 0}
    detail = {
        **counts, "warehouses": {"main": on_hand}, "held": {"main": reserved},
        "moved_at": now + moved, "seen_at": now,
    }  # fmt: skip
    return LedgerEntry(reference="sku-0", kind=partner_ledger.LEVEL, detail=detail)


def test_correction_that_was_made_once_is_sound(made):
    assert breaches() == breaches([adjusted(made)]) == []


def test_correction_that_the_inventory_does_not_know(made):
    ((reference, problem),) = breaches([])
    assert (reference, "has 0 changes" in problem) == (made.id, True)


@pytest.mark.parametrize("wrong", [{"change": 3}, {"warehouse": "south"}])
def test_correction_by_another_number_or_elsewhere(made, wrong):
    assert [reference for reference, _ in breaches([adjusted(made, **wrong)])] == [made.id]


def test_correction_that_was_made_twice(made):
    task, step, direction, _ = made.key.split(":")
    again = adjusted(made, key=f"{task}:{step}:{direction}:2")
    assert made.id in [reference for reference, _ in breaches([adjusted(made), again])]


def test_correction_that_the_shop_shows_as_under_way(made):
    plant("UPDATE orders_stockcorrection SET state = 'asked' WHERE id = %(id)s", id=made.id)
    assert breaches() == [(made.id, "is asked, but its step adjust is processed")]


@pytest.mark.usefixtures("made")
def test_correction_without_a_task():
    lost = uuid4()
    plant(
        "INSERT INTO orders_stockcorrection (id, product_id, warehouse, kind, units, reason, state,"
        " created_at) VALUES (%(id)s, 'sku-0', 'main', 'received', 1, 'x', 'asked',"
        " now() - interval '1 hour')",
        id=lost,
    )
    assert [reference for reference, _ in breaches()] == [str(lost)]


def test_level_below_zero():
    read(time.time(), {"sku-0": {"main": [-1, 0]}})
    assert breaches() == [("sku-0", "has -1 on hand in main, and 0 reserved")]


@pytest.mark.parametrize(
    ("partner", "differs"),
    [
        ({}, False),
        ({"on_hand": 8}, True),
        ({"reserved": 0}, True),
        ({"on_hand": 8, "moved": -5.0}, False),  # it moved after the shop had asked
    ],
)
def test_level_that_the_inventory_never_had(partner, differs):
    read(time.time() - 30, {"sku-0": {"main": [9, 1]}})
    assert [reference for reference, _ in breaches([level(**partner)])] == ["sku-0"] * differs
