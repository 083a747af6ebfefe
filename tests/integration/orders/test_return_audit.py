"""The audit of returns: violations are planted, and found by its checks."""

from types import SimpleNamespace
from uuid import uuid4

import pytest

from orchestration.agents.service_ledger import LedgerEntry
from orchestration.testing.outcomes import done
from orchestration.testing.run import running
from orders.lifecycle import returns
from tests.support.shop import fill_cart, open_checkout, order_in, products, send
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(client):
    """A return of one of two, whose label is made."""
    products()
    with running() as run:
        fill_cart(client, sku_0=2)
        run.script("shipping.label", done(id="lbl_1", tracking="RET1"))
        order = order_in(send(client, open_checkout(client)))
        run.go()
        row = returns.ask(order, {"sku-0": 1}, "damaged", id_=uuid4())
        run.go()
        run.wait(2)
        (call,) = run.calls("shipping.label")
        yield SimpleNamespace(row=row, order=str(order), key=call.key)


def found_by_audit(ledger=None):
    rows = SimpleNamespace(ledger={"shipping": ledger}) if ledger is not None else None
    return violations(rows)


def of(asked, reference):
    """Return the problems of a return."""
    return [breach.problem for breach in found_by_audit() if breach.reference == reference]


def label(asked, kind="label", key=None):
    return LedgerEntry(
        key=key or asked.key, reference=asked.order, kind=kind, result={"id": "lbl_1"}
    )


def test_return_under_way_is_sound(asked):
    assert found_by_audit() == []


def test_more_units_than_were_bought(asked):
    plant(
        "UPDATE orders_return SET lines = jsonb_set(lines, '{0,quantity}', '3') WHERE id = %(id)s",
        id=asked.row.id,
    )
    (problem,) = of(asked, str(asked.row.id))
    assert problem == "3 of sku-0 come back, but 2 were bought"


def test_return_without_a_task(asked):
    lost = uuid4()
    plant(
        "INSERT INTO orders_return (id, order_id, lines, reason, amount, state, created_at) VALUES"
        " (%(id)s, %(order)s, '[]', 'other', 1, 'asked', clock_timestamp() - interval '1 hour')",
        id=lost,
        order=asked.order,
    )
    (problem,) = of(asked, str(lost))
    assert "neither a task nor a submission" in problem


def test_claim_without_a_task(asked):
    lost = uuid4()
    plant(
        "INSERT INTO orders_claim (id, order_id, parcel, state, created_at) VALUES"
        " (%(id)s, %(order)s, 'TRK1', 'asked', clock_timestamp() - interval '1 hour')",
        id=lost,
        order=asked.order,
    )
    (problem,) = of(asked, str(lost))
    assert "neither a task nor a submission" in problem


def test_return_that_pays_without_a_refund(asked):
    plant("UPDATE orders_return SET paid = 10 WHERE id = %(id)s", id=asked.row.id)
    (problem,) = of(asked, str(asked.row.id))
    assert "no such refund" in problem


@pytest.mark.parametrize(
    ("kinds", "sound"), [(["label"], True), (["label", "label"], False), ([], False),
                         (["label", "void"], False)],
)  # fmt: skip
def test_labels_at_the_shipper(asked, kinds, sound):
    entries = [label(asked, kind) for kind in kinds]
    breaches = {(breach.invariant, breach.reference) for breach in found_by_audit(entries)}
    assert ((7, str(asked.row.id)) not in breaches) == sound
