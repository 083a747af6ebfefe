"""Another address for an order: until the parcel is booked, and not a moment later."""

from dataclasses import replace
from uuid import uuid4

import pytest
from django.test import Client

from orchestration.api import TaskHandle
from orchestration.models import Alert
from orchestration.testing.outcomes import done, in_doubt, later, transient
from orders.lifecycle import readdressing
from orders.lifecycle.message import Address
from orders.lifecycle.requests import ADDRESS_TOO_LATE
from orders.models import Order
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
NEW = Address(name="Ada King", street="Rue Neuve 3", postcode="1201", city="Genève", country="CH")


def place(client):
    products()
    fill_cart(client, sku_0=2)
    return order_in(send(client, open_checkout(client)))


@pytest.fixture
def order(run, client):
    """An order that is paid, and whose parcel cannot be booked for a while."""
    run.script(
        "payment.authorize",
        later({"id": "pi_1", "page": "https://bank.test/"}, id="pi_1", look=300),
    )
    order = place(client)
    run.go()
    return order


def confirm(run, order):
    run.complete(
        run.task("process_order", str(order)), "authorize_payment", {"id": "pi_1", "status": "x"}
    )
    run.go()


def goes_to(run):
    return [call.payload["address"]["street"] for call in run.calls("shipping.book")]


def test_parcel_goes_to_the_new_address(run, client, order):
    assert readdressing.readdress(order, NEW) is None
    assert "/address/" not in order_page(client, order)  # one request at a time
    run.go()
    assert Order.objects.get(id=order).street == NEW.street
    assert Order.objects.get(id=order).asked is None
    confirm(run, order)
    assert goes_to(run) == [NEW.street]
    assert NEW.street in order_page(client, order)


def test_address_that_comes_after_the_parcel_was_booked_changes_nothing(run, client, order):
    run.script("payment.capture", transient("busy"))  # so that it goes on for a while
    stale = Order.objects.get(id=order).snapshot
    confirm(run, order)
    # the customer's page shows the order as it was, as messages take their time
    Order.objects.filter(id=order).update(status="received", snapshot=stale)
    before = Order.objects.values().get(id=order)
    assert readdressing.readdress(order, NEW) is None
    run.go()
    after = Order.objects.values().get(id=order)
    assert after["street"] == before["street"] == DETAILS["street"]
    assert after["fingerprint"] == before["fingerprint"]
    assert after["asked"]["refused"] == "TAKEN"
    assert goes_to(run) == [DETAILS["street"]]
    assert elements(order_page(client, order)).only("#too-late").text == ADDRESS_TOO_LATE


def test_request_in_doubt_keeps_its_address(run, order):
    run.script("shipping.book", in_doubt("timeout", happened=False), done(id="s", tracking="T"))
    confirm_later = run.task("process_order", str(order))
    run.complete(confirm_later, "authorize_payment", {"id": "pi_1", "status": "x"})
    run.go()
    readdressing.readdress(order, NEW)
    run.finish()
    assert set(goes_to(run)) == {DETAILS["street"]}
    assert Order.objects.get(id=order).street == DETAILS["street"]


def test_several_changes_one_after_the_other(run, order):
    for number in range(3):
        assert readdressing.readdress(order, replace(NEW, street=f"Rue {number}")) is None
        run.go()
    confirm(run, order)
    assert goes_to(run) == ["Rue 2"]


def test_address_that_a_person_has_reviewed_stays(run, client):
    reviewed = done(id="pi_1", status="requires_capture", review=True, risk=70)
    run.script("payment.authorize", reviewed)
    run.script("inventory.reserve", transient("busy"))  # so that no parcel is booked meanwhile
    order = place(client)
    run.go()
    task = run.task("process_order", str(order))
    assert (task.steps["review_order"], task.steps["reserve_stock"]) == ("awaiting", "pending")
    run.complete(task, "review_order", {"note": ""})
    run.go()
    readdressing.readdress(order, NEW)
    run.go()
    assert Order.objects.get(id=order).asked["refused"] == "TAKEN"
    assert Order.objects.get(id=order).street == DETAILS["street"]


def test_only_within_the_country(order):
    with pytest.raises(readdressing.OtherCountry):
        readdressing.readdress(order, replace(NEW, country="DE", postcode="10435"))
    assert Order.objects.get(id=order).asked is None


def test_engine_keeps_no_address(run, order):
    readdressing.readdress(order, NEW)
    run.go()
    task = run.task("process_order", str(order)).progress
    assert NEW.street not in str(task.data)


def test_request_that_no_row_has_is_set_aside(run, order):
    TaskHandle("process_order", str(order)).amend(
        data={readdressing.CHANGED: "x"}, actor="x", reason="x", id=uuid4(),
        note={"act": "address"},
    )  # fmt: skip
    run.go()
    assert Order.objects.get(id=order).street == DETAILS["street"]
    assert Alert.objects.exists()


def test_customer_changes_it_on_the_page(run, client, order):
    address = f"/orders/{order}/address/"
    assert address in order_page(client, order)
    form = elements(client.get(address).text).only("form#typed")
    assert form.only('input[name="street"]')["value"] == DETAILS["street"]
    assert len(form.only('select[name="country"]').all("option")) == 1
    sent = {
        "name": "Ada",
        "street": "Rue Neuve 3",
        "postcode": "1201",
        "city": "Genève",
        "country": "CH",
    }
    answer = client.post(address, sent)
    assert answer.status_code == 303
    run.go()
    assert "Rue Neuve 3" in order_page(client, order)


@pytest.mark.parametrize(
    "wrong", [{"street": ""}, {"postcode": "x"}, {"country": "DE"}, {"name": ""}]
)
def test_wrong_address_is_shown_again_and_changes_nothing(client, order, wrong):
    sent = {
        "name": "Ada",
        "street": "Rue Neuve 3",
        "postcode": "1201",
        "city": "Genève",
        "country": "CH",
    }
    answer = client.post(f"/orders/{order}/address/", {**sent, **wrong})
    assert answer.status_code == 422
    assert elements(answer.text).only(".errors")
    assert Order.objects.get(id=order).asked is None


def test_stranger_finds_no_form(order):
    address = f"/orders/{order}/address/"
    assert Client().get(address).status_code == 404
    assert Client().post(address, {}).status_code == 404


def test_completed_order_has_no_form(run, client, order):
    confirm(run, order)
    assert "/address/" not in order_page(client, order)
    address = f"/orders/{order}/address/"
    assert client.get(address)["Location"] == f"/orders/{order}/"
    answer = client.post(address, {})
    assert answer.status_code == 409
    assert elements(answer.text).all('p[role="alert"]')
