"""Orders in several parcels, or by the other carrier: the plan, a task for each, and what people see."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import Client

from orchestration.api import request_undo
from orchestration.models import Gate, Task
from orchestration.testing.outcomes import done, in_doubt, rejected
from orders.lifecycle.message import PARCEL_WORKFLOW, WORKFLOW
from orders.lifecycle.operator_search import find
from orders.models import Order, Parcel
from orders.models.parcel import ParcelState
from tests.support.page import elements
from tests.support.shop import (
    DETAILS,
    fill_cart,
    open_checkout,
    order_in,
    order_page,
    products,
    send,
)

pytestmark = pytest.mark.django_db
LINES = [
    {"sku": "sku-0", "quantity": 2, "warehouse": "main"},
    {"sku": "sku-1", "quantity": 1, "warehouse": "south"},
]


def placed(client, **details):
    products()
    fill_cart(client, sku_0=2, sku_1=1)
    return order_in(send(client, open_checkout(client), **details))


@pytest.fixture
def split(run, client):
    """An order whose goods are in two warehouses."""
    run.script("inventory.reserve", done(id="rsv_1", lines=LINES))
    run.script("shipping.book", done(id="1", tracking="TRK1"), done(id="2", tracking="TRK2"))
    return placed(client)


def parcels_on(page):
    return [item.text for listed in elements(page).all("#parcels") for item in listed.all("li")]


def task_of(run, order):
    return run.task(WORKFLOW, str(order))


def sent(order):
    return list(Parcel.objects.filter(order=order).order_by("position"))


def test_each_warehouse_sends_its_parcel_and_the_customer_sees_both(run, client, split):
    run.go()
    task = task_of(run, split)
    assert task.state == "processed"
    assert task.steps["create_shipment"] == "skipped"
    booked = [call.payload for call in run.calls("shipping.book")]
    assert {(payload["warehouse"], payload["lines"][0]["sku"]) for payload in booked} == {
        ("main", "sku-0"), ("south", "sku-1"),
    }  # fmt: skip
    assert [payload["address"]["city"] for payload in booked] == [DETAILS["city"]] * 2
    first, second = sent(split)
    assert {first.tracking, second.tracking} == {"TRK1", "TRK2"}
    assert {first.state, second.state} == {ParcelState.SENT}
    seen = parcels_on(order_page(client, split))
    assert [first.tracking in seen[0], second.tracking in seen[1]] == [True, True]
    assert "Product 0" in seen[0]
    assert not parcels_on(order_page(Client(), split))
    letter = run.calls("notification.send")[-1].payload
    assert letter["parcel"] == [{"tracking": first.tracking}, {"tracking": second.tracking}]


def test_order_in_one_warehouse_costs_no_row_and_no_call_more(run, client):
    run.script("shipping.book", done(id="1", tracking="TRK1"))
    order = placed(client)
    run.go()
    task = task_of(run, order)
    assert task.state == "processed"
    assert [task.steps[name] for name in ("plan_parcels", "send_parcels")] == ["skipped"] * 2
    assert len(run.calls("shipping.book")) == 1
    assert not Parcel.objects.exists()
    assert not Task.objects.filter(workflow=PARCEL_WORKFLOW).exists()
    assert Order.objects.get(id=order).parcel == "TRK1"


def test_parcel_that_is_held_up_does_not_stop_the_other(run, client, split):
    bad = rejected("bad_address", "no such street")
    run.script("shipping.book", bad, reference=f"{split}/send_parcels/1")
    run.go()
    states = [parcel.state for parcel in sent(split)]
    assert states == [ParcelState.SENT, ParcelState.FAILED]
    assert task_of(run, split).steps["send_parcels"] == "awaiting"
    seen = parcels_on(order_page(client, split))
    assert str(ParcelState.SENT.label) in seen[0]
    assert str(ParcelState.FAILED.label) in seen[1]
    request_undo(PARCEL_WORKFLOW, f"{split}/send_parcels/1", actor="ops", reason="lost", id=uuid4())
    run.go()
    assert task_of(run, split).state == "processed"
    assert [parcel.state for parcel in sent(split)] == [ParcelState.SENT, ParcelState.CANCELLED]
    letter = run.calls("notification.send")[-1].payload
    assert letter["parcel"] == [{"tracking": sent(split)[0].tracking}, None]


def test_undone_order_takes_all_its_parcels_back(run, split):
    run.script("payment.capture", rejected("card_declined", ""))
    run.go()
    assert task_of(run, split).state == "error"
    request_undo(WORKFLOW, str(split), actor="ops", reason="no", id=uuid4())
    run.go()
    assert task_of(run, split).state == "undone"
    assert len(run.calls("shipping.cancel")) == 2
    assert {parcel.state for parcel in sent(split)} == {ParcelState.CANCELLED}


def test_courier_goes_where_the_usual_carrier_does_not(run, client):
    run.script("shipping.book", rejected("not_served", "not to PT"))
    run.script("courier.book", done(id="c1", tracking="EXP1"))
    order = placed(client, country="PT", postcode="1000-001", city="Lisboa", street="Rua 1")
    run.go()
    task = task_of(run, order)
    assert task.state == "processed"
    assert len(run.calls("shipping.book")) == 1
    (parcel,) = sent(order)
    assert (parcel.carrier, parcel.tracking, parcel.warehouse) == ("courier", "EXP1", "")
    assert parcel.lines == [{"sku": "sku-0", "quantity": 2}, {"sku": "sku-1", "quantity": 1}]
    (seen,) = parcels_on(order_page(client, order))
    assert "Courier, EXP1" in seen


def test_courier_takes_what_waits_for_a_carrier_that_is_away(run, client):
    order = placed(client)
    away = run.clock.now + timedelta(days=1)
    Gate.objects.filter(agent="shipping").update(
        state="open", opened_at=run.clock.now, probe_at=away
    )
    run.wait(settings.CARRIER_AWAY_AFTER - 60)
    assert task_of(run, order).steps["create_shipment"] == "pending"
    run.wait(120)
    assert task_of(run, order).state == "processed"
    assert [parcel.carrier for parcel in sent(order)] == ["courier"]
    assert not run.calls("shipping.book")


def test_each_of_several_parcels_goes_by_the_carrier_that_takes_it(run, split):
    other = rejected("not_served", "not there")
    run.script("shipping.book", other, reference=f"{split}/send_parcels/1")
    run.script("courier.book", done(id="c1", tracking="EXP1"))
    run.go()
    assert task_of(run, split).state == "processed"
    assert [(parcel.carrier, parcel.state) for parcel in sent(split)] == [
        ("shipping", "sent"), ("courier", "sent"),
    ]  # fmt: skip


def test_refusal_in_doubt_is_left_to_a_person(run, client):
    run.script("shipping.book", in_doubt(), rejected("not_served", stored=False))
    order = placed(client)
    run.go()
    assert task_of(run, order).steps["create_shipment"] == "error"
    assert not run.calls("courier.book")


def test_older_message_about_a_parcel_changes_nothing(run, split):
    run.go()
    Parcel.objects.update(number=9, state=ParcelState.CANCELLED)
    request_undo(PARCEL_WORKFLOW, f"{split}/send_parcels/0", actor="ops", reason="no", id=uuid4())
    run.go()
    assert {parcel.number for parcel in sent(split)} == {9}


def test_operators_find_an_order_by_any_of_its_parcels(run, split):
    run.go()
    for word in ("TRK1", "trk2"):
        assert find([word], personal=False)[word].references == [str(split)]
