"""Replacements that are not sent as they were placed: what they do not need is paid back, once."""

import pytest
from django.db import transaction

from orchestration import api
from orchestration.testing.outcomes import done, rejected
from orders.lifecycle import changes, claims, refunds, status
from orders.models import Order, Product
from tests.support.exchanges import ask, exchanged, inspected, stands
from tests.support.shop import fill_cart, open_checkout, order_in, products, send

pytestmark = pytest.mark.django_db
LABEL = done(id="lbl_1", tracking="RET1")


@pytest.fixture
def order(run, client):
    """An order of two of sku-0 at 10.00 and one of sku-1 at 11.00, which is completed."""
    products()
    run.script("shipping.label", *[LABEL] * 6)
    fill_cart(client, sku_0=2, sku_1=1)
    order = order_in(send(client, open_checkout(client)))
    run.go()
    assert Order.objects.get(id=order).status == "confirmed"
    return order


def test_undone_replacement_is_paid_back(run, order, client):
    row = ask(order, {"sku_0": 2}, {"sku_0": 2})
    run.script("inventory.reserve", rejected("out_of_stock", "sku-0: 0 left"))
    row = inspected(run, row)
    new = Order.objects.get(id=row.replacement)
    assert new.status == "failed"  # the customer decides, as for any order
    changes.cancel(new.id)
    run.go()
    new.refresh_from_db()
    assert new.status == "undone"
    assert stands(order) == (3100, 2000, 0)
    assert Order.objects.get(id=order).refunded == 2000
    assert refunds.left_of(Order.objects.get(id=order)) == 1100


def test_line_that_is_left_out_of_a_replacement_is_paid_back(run, order):
    row = ask(order, {"sku_0": 1, "sku_1": 1}, {"sku_0": 1, "sku_1": 1})
    run.script("inventory.reserve", rejected("out_of_stock", "sku-1: 0 left"), done(id="res_9"))
    row = inspected(run, row)
    new = Order.objects.get(id=row.replacement)
    step = run.task("process_order", str(new.id)).progress.steps[0]
    assert changes.leave_out(new.id, step.attempt, "sku-1") is None
    run.go()
    new.refresh_from_db()
    assert (new.status, new.total, new.to_pay) == ("confirmed", 1000, 0)
    assert stands(order) == (3100, 1100, 1000)


def test_replacement_that_is_not_taken_is_paid_back_once(run, order):
    row = ask(order, {"sku_0": 1}, {"sku_0": 1})
    Product.objects.filter(sku="sku-0").delete()
    row = inspected(run, row)
    assert not Order.objects.filter(id=row.replacement).exists()
    closed = api.Status(
        workflow="process_order", reference=str(row.replacement), number=0,
        kind=api.StatusKind.CLOSED, at=row.created_at, detail={},
    )  # fmt: skip
    for _ in range(2):
        with transaction.atomic():
            status.receive([closed])
    assert stands(order) == (3100, 1000, 0)


def test_replacement_that_is_lost_is_paid_back_by_the_first_payment(run, order, settings):
    settings.CLAIM_AFTER_DAYS = -1  # the clock of the run is ahead
    _row, new = exchanged(run, order, {"sku_0": 1}, {"sku_0": 1})
    run.go()
    new.refresh_from_db()
    claim = claims.ask(new.id, new.parcel, id_=new.id)
    run.go()
    seen = {"send_again": False, "percent": 100, "note": ""}
    run.complete(run.task("claim_parcel", str(claim.id)), "decide_claim", seen, actor="rita")
    run.go()
    claim.refresh_from_db()
    assert (claim.state, claim.paid) == ("refunded", 1000)
    assert stands(order) == (3100, 1000, 0)
