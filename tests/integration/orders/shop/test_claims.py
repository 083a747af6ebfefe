"""Parcels that did not arrive: staff have the goods sent again, pay back, or refuse."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from django.db import connections
from django.test import Client

from orchestration import api
from orchestration.models import Task
from orchestration.testing.outcomes import done, rejected
from orders.lifecycle import claims, returns
from orders.models import Claim, Order, Parcel
from tests.support.page import elements
from tests.support.shop import (
    DETAILS,
    buy,
    carry_out,
    fill_cart,
    finish_all,
    open_checkout,
    order_in,
    order_page,
    products,
    send,
)

pytestmark = pytest.mark.django_db
SENT, AGAIN = done(id="shp_1", tracking="TRK1"), done(id="shp_2", tracking="TRK2")


@pytest.fixture(autouse=True)
def _at_once(settings):
    settings.CLAIM_AFTER_DAYS = 0


@pytest.fixture
def order(run, client):
    products()
    fill_cart(client, sku_0=2)
    run.script("shipping.book", SENT, AGAIN)
    order = order_in(send(client, open_checkout(client)))
    run.go()
    assert Order.objects.get(id=order).parcel == "TRK1"
    return order


def ask(order, parcel="TRK1"):
    return claims.ask(order, parcel, id_=uuid4())


def decided(run, row, percent=0, send_again=False, note=""):
    run.go()
    task = run.task("claim_parcel", str(row.id))
    seen = {"send_again": send_again, "percent": percent, "note": note}
    run.complete(task, "decide_claim", seen, actor="rita")
    run.go()
    row.refresh_from_db()
    return row


def test_goods_are_sent_again(run, client, order):
    row = decided(run, ask(order), send_again=True)
    assert (row.state, row.again, row.paid) == ("again", "TRK2", 0)
    _first, second = run.calls("inventory.reserve")
    assert [line["sku"] for line in second.payload["lines"]] == ["sku-0"]
    assert run.calls("shipping.book")[-1].payload["address"]["street"] == DETAILS["street"]
    assert run.calls("notification.send")[-1].payload["parcel"] == "TRK2"
    assert "TRK2" in elements(order_page(client, order)).only("#claims").text


def test_next_parcel_may_be_claimed_too(run, order):
    decided(run, ask(order), send_again=True)
    assert ask(order, "TRK2").parcel == "TRK2"
    assert Claim.objects.count() == 2


def test_order_is_paid_back(run, order):
    row = decided(run, ask(order), percent=100, note="The carrier has lost it.")
    assert (row.state, row.paid) == ("refunded", 2000)
    assert Order.objects.get(id=order).refunded == 2000
    assert len(run.calls("shipping.book")) == 1


def test_refused_claim_says_why(run, order):
    row = decided(run, ask(order), note="Your neighbour has it.")
    assert (row.state, row.paid) == ("refused", 0)
    (letter,) = Task.objects.filter(reference__contains="claim-refused")
    assert "Your neighbour has it." in letter.data["mail"]["text"]


def test_sold_out_goods_wait_for_staff_who_may_undo(run, order):
    run.script("inventory.reserve", rejected("out_of_stock"))
    row = decided(run, ask(order), send_again=True)
    task = run.task("claim_parcel", str(row.id))
    assert task.steps["reserve_again"] == "error"
    api.request_undo("claim_parcel", str(row.id), actor="ann", reason="none left", id=uuid4())
    run.go()
    row.refresh_from_db()
    assert row.state == "refused"


def test_parcel_is_claimed_once(run, order):
    assert ask(order).id == ask(order).id
    decided(run, ask(order), percent=100)
    run.go()
    assert len(run.calls("payment.refund")) == Claim.objects.count() == 1


def test_what_cannot_be_claimed(order, settings):
    with pytest.raises(claims.NotClaimable):
        ask(order, "TRK9")
    settings.CLAIM_AFTER_DAYS = 7
    with pytest.raises(claims.NotClaimable):
        ask(order)
    assert not Claim.objects.exists()


def test_what_came_back_is_not_lost_and_what_is_lost_does_not_come_back(run, order):
    ask(order)
    with pytest.raises(returns.NotReturnable):
        returns.ask(order, {"sku-0": 1}, "other", id_=uuid4())
    Claim.objects.all().delete()
    run.script("shipping.label", done(id="lbl_1", tracking="RET1"))
    returns.ask(order, {"sku-0": 1}, "other", id_=uuid4())
    with pytest.raises(claims.NotClaimable):
        ask(order)


def test_customer_claims_on_the_order_page_once(client, order):
    form = elements(order_page(client, order)).only('form[action*="/claim/"]')
    sent = {"parcel": form.only('input[name="parcel"]')["value"]}
    for _ in range(2):
        assert client.post(f"/orders/{order}/claim/", sent).status_code == 303
    assert Claim.objects.get().parcel == "TRK1"
    seen = elements(order_page(client, order))
    assert seen.only("[data-claim]")["data-claim"] == "asked"
    assert not seen.all('form[action*="/claim/"]')
    assert client.post(f"/orders/{order}/claim/", {"parcel": "x"}).status_code == 409
    assert Client().post(f"/orders/{order}/claim/", sent).status_code == 404


def test_forged_claim_is_set_aside(run, order):
    row = ask(order)
    run.go()
    real = run.task("claim_parcel", str(row.id)).progress.data
    api.submit("claim_parcel", reference=str(uuid4()), data=real, reply_to="shop")
    run.go()
    assert Task.objects.filter(workflow="claim_parcel").count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("shelf")
def test_two_claims_at_once_are_one(client):
    """Fails without the lock of the order's row: the second meets the constraint."""
    order = buy(client)
    carry_out()
    finish_all()
    parcel = Order.objects.get(id=order).parcel

    def attempt(_):
        try:
            return ask(order, parcel).id
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(attempt, range(4)))) == 1


def test_one_of_several_parcels_is_sent_again_with_what_was_in_it(run, client):
    products()
    fill_cart(client, sku_0=2, sku_1=1)
    lines = [
        {"sku": "sku-0", "quantity": 2, "warehouse": "main"},
        {"sku": "sku-1", "quantity": 1, "warehouse": "south"},
    ]
    run.script("inventory.reserve", done(id="rsv_1", lines=lines), done(id="rsv_2"))
    run.script("shipping.book", SENT, AGAIN, done(id="shp_3", tracking="TRK3"))
    order = order_in(send(client, open_checkout(client)))
    run.go()
    lost = Parcel.objects.get(order=order, warehouse="south")
    assert claims.claimable(Order.objects.get(id=order), []) == ["TRK1", "TRK2"]
    row = decided(run, ask(order, lost.tracking), send_again=True)
    assert run.calls("inventory.reserve")[-1].payload["lines"] == [{"sku": "sku-1", "quantity": 1}]
    decided(run, ask(order, row.again), send_again=True)
    assert run.calls("inventory.reserve")[-1].payload["lines"] == [{"sku": "sku-1", "quantity": 1}]
