"""Returns: the label, the parcel, the inspection and the money; never more units than were bought."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import connections, transaction
from django.test import Client

from orchestration import api
from orchestration.models import Task
from orchestration.testing.outcomes import done, in_doubt
from orders.lifecycle import refunds, returns, snapshots
from orders.models import Order, Refund, Return
from tests.support.database import another
from tests.support.page import elements
from tests.support.shop import (
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
LABEL = done(id="lbl_1", tracking="RET1")


@pytest.fixture
def order(run, client):
    """An order of two of sku-0 at 10.00 and one of sku-1 at 11.00, which is completed."""
    products()
    fill_cart(client, sku_0=2, sku_1=1)
    run.script("shipping.label", *[LABEL] * 4)
    order = order_in(send(client, open_checkout(client)))
    run.go()
    assert Order.objects.get(id=order).status == "confirmed"
    return order


def ask(order, reason="not_liked", **units):
    by_sku = {sku.replace("_", "-"): count for sku, count in units.items()}
    return returns.ask(order, by_sku, reason, id_=uuid4())


def task(run, row):
    return run.task("return_order", str(row.id))


def labelled(run, order, **units):
    """Return a return whose label was sent."""
    row = ask(order, **units)
    run.go()
    run.wait(2)
    row.refresh_from_db()
    return row


def inspected(run, row, percent=100, restock=True, note=""):
    """Have the parcel of a return arrive and staff decide."""
    returns.arrived(row.id, by="wim")
    run.go()
    seen = {"percent": percent, "restock": restock, "note": note}
    run.complete(task(run, row), "inspect_goods", seen, actor="rita")
    run.go()
    row.refresh_from_db()
    return row


def letters(kind):
    tasks = Task.objects.filter(workflow="tell_customer", reference__contains=kind)
    return [task.data["mail"] for task in tasks]


def test_return_is_labelled_inspected_restocked_and_paid_back(run, order):
    row = labelled(run, order, sku_0=1)
    assert (row.state, row.label, row.amount) == ("awaited", "RET1", 1000)
    (label,) = run.calls("shipping.label")
    assert label.payload == {"order": str(order), "return": str(row.id)}
    sent = run.calls("notification.send")[-1].payload
    assert (sent["parcel"], "1 x Product 0" in sent["mail"]["text"]) == ("RET1", True)
    row = inspected(run, row)
    assert (row.state, row.paid) == ("refunded", 1000)
    (back,) = run.calls("inventory.restock")
    assert back.payload["lines"] == [{"sku": "sku-0", "name": "Product 0", "quantity": 1}]
    assert run.calls("payment.refund")[0].payload["amount"] == 1000
    assert Order.objects.get(id=order).refunded == 1000


def test_part_is_paid_back_and_what_is_broken_is_not_restocked(run, order):
    row = inspected(
        run, labelled(run, order, sku_0=2), percent=45, restock=False, note="Scratched."
    )
    assert (row.state, row.paid) == ("refunded", 900)
    assert not run.calls("inventory.restock")
    assert Refund.objects.get().reason.endswith("Scratched.")


def test_refused_return_pays_nothing_and_says_why(run, order):
    row = inspected(
        run, labelled(run, order, sku_0=2), percent=0, restock=False, note="It is used."
    )
    assert (row.state, row.paid) == ("refused", 0)
    assert not Refund.objects.exists()
    (letter,) = letters("return-refused")
    assert "It is used." in letter["text"]


def test_parcel_that_does_not_come_ends_the_return(run, order):
    row = labelled(run, order, sku_0=2)
    run.finish()
    run.wait(31 * 86_400)
    row.refresh_from_db()
    assert row.state == "lapsed"
    assert task(run, row).state == "undone"
    assert len(run.calls("shipping.void")) == 1
    assert len(letters("return-lapsed")) == 1
    with pytest.raises(returns.NotAwaited):
        returns.arrived(row.id, by="wim")


def test_units_of_a_lapsed_return_are_free_again(run, order, settings):
    settings.RETURN_WITHIN_DAYS = 60
    row = labelled(run, order, sku_0=2)
    run.wait(31 * 86_400)
    row.refresh_from_db()
    assert row.state == "lapsed"
    assert ask(order, sku_0=2).amount == 2000


def test_label_in_doubt_is_asked_for_again_under_its_key(run, order):
    run.script("shipping.label", in_doubt("timeout", happened=True), LABEL)
    row = ask(order, sku_0=1)
    run.finish()
    assert len({call.key for call in run.calls("shipping.label")}) == 1
    assert task(run, row).steps["make_label"] == "processed"


def test_never_more_units_than_were_bought_over_all_returns(run, order):
    ask(order, sku_0=1)
    with pytest.raises(returns.TooMany) as refusal:
        ask(order, sku_0=2)
    assert refusal.value.left == {"sku-0": 1, "sku-1": 1}
    for wrong in ({"sku_0": 0}, {"sku_0": -1}, {"sku_9": 1}, {}):
        with pytest.raises(returns.TooMany):
            ask(order, **wrong)
    assert Return.objects.count() == 1


def test_return_is_made_once_however_often_it_is_asked_for(run, order):
    id_ = uuid4()
    for _ in range(2):
        returns.ask(order, {"sku-0": 1}, "other", id_=id_)
    run.go()
    assert Return.objects.count() == len(run.calls("shipping.label")) == 1


def test_return_after_a_refund_pays_no_more_than_is_left(run, order):
    row = labelled(run, order, sku_0=2)
    refunds.refund(order, 2500, "A chip.", id_=uuid4(), by=None)
    row = inspected(run, row)
    assert (row.state, row.paid) == ("refunded", 600)


def test_order_is_returned_in_time_only(order, settings):
    settings.RETURN_WITHIN_DAYS = 0
    with pytest.raises(returns.NotReturnable):
        ask(order, sku_0=1)
    assert not Return.objects.exists()


def test_forged_return_is_set_aside(run, order):
    row = ask(order, sku_0=1)
    run.go()
    real = task(run, row).progress.data
    api.submit(
        "return_order", reference=str(uuid4()), data={**real, "amount": 9_999}, reply_to="shop"
    )
    run.go()
    assert Task.objects.filter(workflow="return_order").count() == 1
    assert len(run.calls("shipping.label")) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("shelf")
def test_two_returns_at_once_share_what_was_bought(client):
    """Fails without the lock of the order's row: both read the same units."""
    order = buy(client)
    carry_out()
    finish_all()

    def attempt(_):
        try:
            ask(order, sku_0=2)
        except returns.TooMany:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(attempt, range(4))) == [False, False, False, True]


def form_of(client, order):
    """Return the fields of the form on the order's page as they are sent; units by SKU are 0."""
    form = elements(order_page(client, order)).only('form[action*="/return/"]')
    fields = {field["name"]: "0" for field in form.all("select")}
    return {**fields, "id_": form.only('input[name="id_"]')["value"]}


def test_customer_asks_on_the_order_page(run, client, order):
    fields = form_of(client, order)
    assert {name for name in fields if name.startswith("units-")} == {"units-sku-0", "units-sku-1"}
    sent = {**fields, "units-sku-0": "2", "reason": "damaged"}
    for _ in range(2):  # the same page sent twice is one return
        assert client.post(f"/orders/{order}/return/", sent).status_code == 303
    row = Return.objects.get()
    assert (row.reason, row.lines[0]["quantity"]) == ("damaged", 2)
    run.go()
    run.wait(2)
    seen = elements(order_page(client, order)).only("#returns")
    assert seen.only("[data-return]")["data-return"] == "awaited"
    assert "RET1" in seen.text
    assert set(form_of(client, order)) == {"units-sku-1", "reason", "id_"}


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({}, 422),
        ({"units-sku-0": "x"}, 422),
        ({"units-sku-0": "-1"}, 422),
        ({"units-sku-0": "1", "reason": "bored"}, 422),
        ({"units-sku-0": "1", "id_": "x"}, 422),
        ({"units-sku-0": "3"}, 409),
    ],
)
def test_wrong_form_is_refused_and_changes_nothing(client, order, wrong, status):
    sent = {**form_of(client, order), "reason": "other", **wrong}
    answer = client.post(f"/orders/{order}/return/", sent)
    assert answer.status_code == status
    assert elements(answer.text).only('p[role="alert"]').text
    assert not Return.objects.exists()


def test_others_neither_see_nor_ask_for_returns(client, order):
    ask(order, sku_0=1)
    stranger = Client()
    assert "data-return" not in order_page(stranger, order)
    sent = {"id_": str(uuid4()), "units-sku-1": "1", "reason": "other"}
    assert stranger.post(f"/orders/{order}/return/", sent).status_code == 404
    assert Return.objects.count() == 1


def test_order_under_way_has_no_form(client):
    products()
    placed = buy(client)
    carry_out()
    assert "/return/" not in order_page(client, placed)
    sent = {"id_": str(uuid4()), "units-sku-0": "1", "reason": "other"}
    assert client.post(f"/orders/{placed}/return/", sent).status_code == 409
    assert not Return.objects.exists()


def test_page_with_returns_query_count(client, order, django_assert_max_num_queries):
    for _ in range(2):
        ask(order, sku_0=1)
    with django_assert_max_num_queries(7):
        order_page(client, order)


WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("shelf")
def test_parcel_that_arrives_while_the_label_is_reported_has_arrived(client):
    """Fails without the lock of the returns' rows: the report of the label overwrites it."""
    order = buy(client)
    carry_out()
    finish_all()
    row = ask(order, sku_0=1)
    progress = snapshots.of(Order.objects.get(id=order))
    label = replace(progress.steps[0], name="make_label", result={"tracking": "RET1"})
    status = api.Status(
        workflow="return_order", reference=str(row.id), number=1, kind=api.StatusKind.REMINDER,
        at=row.created_at, detail={},
        progress=replace(progress, steps=(label,)),
    )  # fmt: skip

    def report():
        try:
            with transaction.atomic():
                returns.receive([status])
        finally:
            connections.close_all()

    with another() as cursor, ThreadPoolExecutor(1) as pool:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE orders_return SET state = 'arrived' WHERE id = %s", [str(row.id)])
        reported = pool.submit(report)
        with another() as watch:
            waits = 0
            while not waits and not reported.done():
                watch.execute(WAITS)
                waits = watch.fetchone()[0]
        cursor.execute("COMMIT")
        reported.result()
    row.refresh_from_db()
    assert (row.state, row.label) == ("arrived", "RET1")


def test_return_that_staff_undo_after_its_parcel_came_is_refused(run, order):
    row = labelled(run, order, sku_0=1)
    returns.arrived(row.id, by="wim")
    run.go()
    api.request_undo("return_order", str(row.id), actor="ann", reason="empty", id=uuid4())
    run.go()
    row.refresh_from_db()
    assert row.state == "refused"
    assert len(letters("return-refused")) == 1
