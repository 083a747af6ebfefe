"""Parts of orders that are paid back: bounds, what customers and staff see, and the ledger of money."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from uuid import uuid4

import pytest
from django.db import connections

from orchestration.api import request_undo
from orchestration.testing.outcomes import done, in_doubt, rejected
from orders.figures import by_day
from orders.lifecycle import refunds
from orders.models import Order, Refund
from tests.support.operators import browser, person
from tests.support.page import elements, page
from tests.support.shop import fill_cart, open_checkout, order_in, order_page, products, send

pytestmark = pytest.mark.django_db


def completed(run, client, method="pm_card_visa"):
    """Return the id of an order of 20.00 that is completed."""
    products()
    fill_cart(client, sku_0=2)
    order = order_in(send(client, open_checkout(client), payment_method=method))
    run.go()
    assert Order.objects.get(id=order).status == "confirmed"
    return order


@pytest.fixture
def order(run, client):
    return completed(run, client)


@pytest.fixture
def owner():
    return browser(person("boss", is_staff=True, is_superuser=True))


def pay_back(order, amount, reason="A chip in the mug."):
    return refunds.refund(order, amount, reason, id_=uuid4(), by=None)


def stands(order):
    """Return the refunds of an order, and what is paid back of it."""
    states = (
        Refund.objects.filter(order=order).order_by("created_at").values_list("amount", "state")
    )
    return list(states), Order.objects.get(id=order).refunded


def test_part_is_paid_back_and_the_customer_is_written_to(run, client, order):
    refund = pay_back(order, 500)
    assert stands(order) == ([(500, "asked")], 0)
    run.go()
    assert stands(order) == ([(500, "paid")], 500)
    (call,) = run.calls("payment.refund")
    assert call.payload["amount"] == 500
    assert (
        call.payload["payment"]
        == run.task("process_order", str(order)).result("capture_payment")["id"]
    )
    letter = run.task("refund_order", str(refund.id)).progress.data["mail"]
    assert "€5.00" in letter["text"]
    assert "A chip in the mug." in letter["text"]
    assert "€5.00" in elements(order_page(client, order)).only("#refunded").text


def test_refunds_are_never_above_what_was_taken_over_all_of_them(run, order):
    pay_back(order, 1500)
    with pytest.raises(refunds.TooMuch) as refusal:
        pay_back(order, 501)
    assert refusal.value.left == 500
    pay_back(order, 500)
    run.go()
    with pytest.raises(refunds.TooMuch):
        pay_back(order, 1)
    assert stands(order) == ([(1500, "paid"), (500, "paid")], 2000)


def test_refund_is_made_once_however_often_it_is_asked_for(run, order):
    id_ = uuid4()
    for _ in range(2):
        refunds.refund(order, 700, "Late.", id_=id_, by=None)
    run.go()
    assert stands(order) == ([(700, "paid")], 700)
    assert len(run.calls("payment.refund")) == 1


def test_refund_in_doubt_is_repeated_under_its_key(run, order):
    run.script(
        "payment.refund", in_doubt("timeout", happened=True), done(id="re_1", status="succeeded")
    )
    pay_back(order, 700)
    run.finish()
    assert stands(order) == ([(700, "paid")], 700)
    assert len({call.key for call in run.calls("payment.refund")}) == 1


def test_refused_refund_waits_for_staff_and_undone_frees_its_amount(run, order):
    run.script("payment.refund", rejected("refund_failed"))
    refund = pay_back(order, 2000)
    run.finish()
    task = run.task("refund_order", str(refund.id))
    assert task.steps == {"refund_payment": "error", "tell_customer": "waiting"}
    with pytest.raises(refunds.TooMuch):
        pay_back(order, 1)
    request_undo("refund_order", str(refund.id), actor="ann", reason="no account", id=uuid4())
    run.go()
    assert stands(order) == ([(2000, "undone")], 0)
    run.script("payment.refund", done(id="re_2", status="succeeded"))
    pay_back(order, 2000)
    run.go()
    assert Order.objects.get(id=order).refunded == 2000


def test_order_under_way_is_not_refunded_but_cancelled(run, client):
    products()
    fill_cart(client, sku_0=2)
    run.script("shipping.book", rejected("address_unknown"))
    order = order_in(send(client, open_checkout(client)))
    run.go()
    with pytest.raises(refunds.NotRefundable):
        pay_back(order, 1)
    assert not Refund.objects.exists()


def test_transfer_is_paid_back_by_its_payment(run, client):
    run.script("payment.authorize", done(id="pi_t", status="succeeded", taken=True))
    order = completed(run, client, "customer_balance")
    pay_back(order, 300)
    run.go()
    assert run.calls("payment.refund")[0].payload == {"payment": "pi_t", "amount": 300}


def test_figures_count_parts(run, order):
    pay_back(order, 300)
    run.go()
    Order.objects.filter(id=order).update(created_at=datetime(2026, 3, 1, 12, tzinfo=UTC))
    (row,) = by_day(date(2026, 3, 1), date(2026, 3, 1))
    assert (row.gross, row.refunds) == (2000, 300)


def test_staff_pay_back_in_the_admin_once(run, owner, order):
    address = f"/admin/orders/order/{order}/refund/"
    shown = owner.get(f"/admin/orders/order/{order}/change/").text
    assert address in shown
    form = page(owner.get(address)).only("form#refund")
    sent = {
        "id_": form.only('input[name="id_"]')["value"], "amount": "12.50", "reason": "A chip.",
    }  # fmt: skip
    for _ in range(2):
        answer = owner.post(address, sent)
        assert (answer.status_code, answer["Location"]) == (
            302,
            f"/admin/orders/order/{order}/change/",
        )
    run.go()
    assert stands(order) == ([(1250, "paid")], 1250)
    assert "kept: €7.50" in owner.get(f"/admin/orders/order/{order}/change/").text


@pytest.mark.parametrize(
    "wrong",
    [{"amount": "20.01"}, {"amount": "0"}, {"amount": "-1"}, {"amount": "x"}, {"reason": " "},
              {"id_": "x"}]
)  # fmt: skip
def test_wrong_refund_is_refused_and_changes_nothing(run, owner, order, wrong):
    sent = {"id_": str(uuid4()), "amount": "1.00", "reason": "A chip.", **wrong}
    answer = owner.post(f"/admin/orders/order/{order}/refund/", sent)
    assert answer.status_code == 422
    assert not Refund.objects.exists()


def test_refund_needs_its_permission(order):
    viewer = person("viewer", "view_order", is_staff=True)
    address = f"/admin/orders/order/{order}/refund/"
    assert browser(viewer).get(address).status_code == 403
    assert address not in browser(viewer).get(f"/admin/orders/order/{order}/change/").text


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("shelf")
def test_two_refunds_at_once_share_what_is_left(client):
    """Fails without the lock of the order's row: both read the same rest."""
    from tests.support.shop import buy, carry_out, finish_all

    order = buy(client)
    carry_out()
    finish_all()

    def attempt(_):
        try:
            pay_back(order, 1500)
        except refunds.TooMuch:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(4) as pool:
        paid = list(pool.map(attempt, range(4)))
    assert sorted(paid) == [False, False, False, True]
