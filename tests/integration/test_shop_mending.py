"""Customers mend what is theirs: another card, less goods, patience, or an end to it."""

import re

import pytest
from django.db import DatabaseError
from django.test import Client

from orchestration import submission
from orchestration.leader import Leadership
from orchestration.models import Alert, Event, Step, Submission, Task
from orchestration.models.fields import DatabaseNow
from orders import mending
from orders.access import link
from orders.models import Order, Placement
from tests.database import writes_fail
from tests.engine import staff, sweep
from tests.shop import (
    answer,
    ask,
    buy,
    carry_out,
    declined,
    finish_all,
    inform,
    placed,
    posted,
    products,
    sold_out,
)

pytestmark = pytest.mark.django_db
LEADER = Leadership(holder="supervisor-1", epoch=1)
VISA = {"attempt": 1, "payment_method": "pm_card_visa"}


@pytest.fixture(autouse=True)
def _shop():
    products()
    staff()


def page(client, order):
    return client.get(f"/orders/{order}/").content.decode()


def supervise():
    sweep(LEADER)
    inform()


def act(client, order, what, **sent):
    """Ask for something that is offered, and have the engine carry it out."""
    response = client.post(f"/orders/{order}/{what}/", sent)
    assert response.status_code == 303, response.content.decode()
    carry_out()
    return response


def test_another_card_after_a_decline_and_the_order_goes_on(client):
    order = declined(client)
    seen = page(client, order)
    assert "Your card was declined. Nothing was charged." in seen
    assert "Thank you" not in seen
    assert "We keep your order until" in seen
    assert act(client, order, "card", **VISA)["Location"] == f"/orders/{order}/"
    asked = ask()
    assert asked["authorize_payment"].payload["payment_method"] == "pm_card_visa"
    assert asked["authorize_payment"].key.endswith(":authorize_payment:do:2")
    answer(asked)
    finish_all()
    assert Task.objects.get(reference=str(order)).state == "processed"
    assert "confirmed" in page(client, order)
    assert not Alert.objects.filter(closed_at=None).exists()
    assert Event.objects.get(kind="resubmitted").actor == "customer"


def test_a_second_click_is_told_kindly_and_does_nothing(client):
    order = declined(client)
    assert client.post(f"/orders/{order}/card/", VISA).status_code == 303
    for _ in ("while it is on its way", "when it is carried out"):
        again = client.post(f"/orders/{order}/card/", VISA)
        assert again.status_code == 409
        assert "That is done already" in again.content.decode()
        carry_out()
    answer(ask(), authorize_payment="insufficient_funds|no")
    assert client.post(f"/orders/{order}/card/", VISA).status_code == 409  # of the first decline
    act(client, order, "card", **{**VISA, "attempt": 2})
    assert Event.objects.filter(kind="resubmitted").count() == 2


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"attempt": 1}, "Please choose a card"),
        ({"attempt": 1, "payment_method": "cash"}, "Please choose one of these cards"),
        ({"payment_method": "pm_card_visa"}, ""),
    ],
)
def test_no_card_changes_nothing(client, sent, told):
    order = declined(client)
    response = client.post(f"/orders/{order}/card/", sent)
    assert response.status_code == 422
    assert told in response.content.decode()
    assert Step.objects.get(name="authorize_payment").process_state == "error"


@pytest.mark.parametrize(
    ("step", "what", "sent"),
    [
        ("authorize_payment", "card", VISA),
        ("reserve_stock", "wait", {"attempt": 1}),
        ("reserve_stock", "leave-out", {"attempt": 1, "sku": "sku-1"}),
    ],
)
def test_what_failed_for_another_cause_is_not_for_its_customer_to_resubmit(
    client, step, what, sent
):
    order = placed(client, sku_0=2, sku_1=1)
    answer(ask(), **{step: "not_allowed|the account is closed"})
    assert client.post(f"/orders/{order}/{what}/", sent).status_code == 409
    assert Step.objects.get(name=step).process_state == "error"
    assert not Event.objects.filter(kind="resubmitted").exists()
    assert "closed" not in page(client, order)


def test_the_link_in_the_letter_is_enough(client):
    order = declined(client)
    (letter,) = posted("action-needed")
    address = re.search(r"http://localhost:8000(\S+)", letter["text"])[1]
    assert address == link(order)
    assert address.replace("&", "&amp;") in letter["html"]
    assert "Your card was declined" in letter["text"]
    assert "We keep your order until" in letter["text"]
    guest = Client()
    seen = guest.get(address).content.decode()
    form = re.search(r'action="(/orders/[^"]+/card/[^"]*)"', seen)[1].replace("&amp;", "&")
    response = guest.post(form, VISA)
    assert (response.status_code, response["Location"]) == (303, address)


def test_not_mended_in_time_it_is_cancelled_and_said_so(client):
    order = declined(client)
    supervise()
    assert Order.objects.get(id=order).status == "failed"
    Step.objects.filter(mend_by__isnull=False).update(mend_by=DatabaseNow())
    supervise()
    assert "Your order is being cancelled" in page(client, order)
    answer(ask())
    assert Order.objects.get(id=order).status == "undone"
    assert "Your card was declined. Your order was cancelled. Nothing was charged." in page(
        client, order
    )
    (letter,) = posted("cancelled")
    assert "Nothing was charged" in letter["text"]
    assert client.post(f"/orders/{order}/card/", VISA).status_code == 409


def test_what_is_sold_out_is_left_out_and_only_the_rest_is_paid(client):
    order = sold_out(client)
    assert "Product 1 is sold out" in page(client, order)
    left = {"attempt": 1, "sku": "sku-1"}
    act(client, order, "leave-out", **left)
    assert client.post(f"/orders/{order}/leave-out/", left).status_code == 409
    asked = ask()
    assert asked["reserve_stock"].payload["lines"] == [
        {"sku": "sku-0", "name": "Product 0", "unit_price": 1000, "quantity": 2}
    ]
    answer(asked)
    answer(ask())
    capture = ask()
    assert capture["capture_payment"].payload["amount"] == 2000
    answer(capture)
    confirmation = ask()["send_confirmation"].payload
    assert "€20.00" in confirmation["mail"]["text"]
    assert confirmation["parcel"] == "TRK1"
    row = Order.objects.get(id=order)
    assert (row.total, row.lines.count()) == (2000, 1)
    task = Task.objects.get(reference=str(order))
    assert (task.data["total"], task.value) == (2000, 2000)


def test_the_only_product_cannot_be_left_out(client):
    order = sold_out(client, sku_1=1)
    assert "leave-out" not in page(client, order)
    for sku in ("sku-1", "sku-7", ""):
        sent = {"attempt": 1, "sku": sku}
        assert client.post(f"/orders/{order}/leave-out/", sent).status_code == 409


def test_who_waits_is_not_asked_again_until_the_goods_are_back(client):
    order = sold_out(client)
    act(client, order, "wait", attempt=1)
    for attempt in (2, 3):
        assert "We keep the order and look for it again" in page(client, order)
        Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
        sweep(LEADER)  # no worker of the shop need be there
        answer(ask(), reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand")
        step = Step.objects.get(name="reserve_stock")
        assert (step.process_state, step.attempt) == ("pending", attempt)
        assert step.run_after is not None
    assert len(posted("action-needed")) == 1  # of before it was to wait
    Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
    supervise()
    answer(ask())
    finish_all()
    assert "confirmed" in page(client, order)


def test_an_order_of_an_application_cannot_wait(client):
    order = sold_out(client)
    Placement.objects.filter(order=order).update(application="till")
    assert f"/orders/{order}/wait/" not in page(client, order)
    assert client.post(f"/orders/{order}/wait/", {"attempt": 1}).status_code == 409


def test_who_waits_for_goods_is_asked_about_the_card_all_the_same(client):
    order = placed(client, sku_0=2, sku_1=1)
    asked = ask()
    card = {"authorize_payment": asked.pop("authorize_payment")}
    answer(asked, reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand")
    act(client, order, "wait", attempt=1)
    answer(card, authorize_payment="generic_decline|no")
    letter = posted("action-needed")[-1]
    assert "Your card was declined" in letter["text"]


def test_patience_has_an_end(client):
    order = sold_out(client)
    act(client, order, "wait", attempt=1)
    step = Step.objects.get(name="reserve_stock")
    step.patience["until"] = step.pending_since.isoformat()
    step.run_after = step.pending_since
    step.save()
    supervise()
    answer(ask(), reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand")
    assert "Product 1 is sold out" in page(client, order)
    assert len(posted("action-needed")) == 2


def test_cancelling_gives_the_money_back_and_shows_how_far_it_is(client):
    order = placed(client)
    for _ in range(3):
        answer(ask())
    assert "Yes, cancel it" in page(client, order)
    act(client, order, "cancel")
    assert client.post(f"/orders/{order}/cancel/").status_code == 409
    seen = page(client, order)
    assert "your payment is on its way back to you" in seen
    assert "Thank you" not in seen
    assert "Returning your payment" in seen
    finish_all()
    assert "You get back what you paid" in page(client, order)
    (letter,) = posted("cancelled")
    assert "You get back what you paid" in letter["text"]


def test_what_is_on_its_way_cannot_be_cancelled(client):
    order = placed(client)
    finish_all()
    assert "Cancel the order" not in page(client, order)
    response = client.post(f"/orders/{order}/cancel/")
    assert response.status_code == 409
    assert "You may send back what arrives" in response.content.decode()
    assert Task.objects.get(reference=str(order)).state == "processed"


def test_an_order_that_cannot_be_taken_is_admitted(client):
    order = buy(client)
    Submission.objects.filter(reference=str(order)).update(data={})
    carry_out()
    seen = page(client, order)
    assert "We could not take your order. Nothing was charged" in seen
    assert "Thank you" not in seen


def test_strangers_are_shown_nothing_to_do(client):
    order = declined(client)
    seen = page(Client(), order)
    assert "another card" not in seen
    assert "Cancel" not in seen


def test_what_is_new_is_said_once(client):
    order = placed(client)
    poll = re.search(r'hx-get="([^"]+)"', page(client, order))[1].replace("&amp;", "&")
    answer(ask())
    changed = client.get(poll).content.decode()
    assert 'id="said" hx-swap-oob' in changed
    assert "Booking your shipment." in changed
    poll = re.search(r'hx-get="([^"]+)"', changed)[1].replace("&amp;", "&")
    assert client.get(poll).status_code == 204
    only_older = re.sub(r"v=[^&]+", "v=older", poll)
    assert "hx-swap-oob" not in client.get(only_older).content.decode()


def test_acts_are_counted(client):
    order = declined(client)
    codes = [client.post(f"/orders/{order}/card/", {}).status_code for _ in range(21)]
    assert codes == [422] * 20 + [429]


def test_letters_are_sent_after_the_orders_and_do_not_hold_them_up(client):
    order = placed(client)
    submission.take(100)
    finish_all()
    letter = Task.objects.get(workflow="tell_customer")
    assert letter.state == "processed"
    assert letter.priority < Task.objects.get(reference=str(order)).priority


def test_while_a_request_is_on_its_way_nothing_else_is_offered(client):
    order = declined(client)
    assert "Pay with another card" in page(client, order)
    client.post(f"/orders/{order}/card/", {**VISA, "payment_method": "pm_card_sandbox_replyLost"})
    seen = page(client, order)
    assert "we have passed that on" in seen
    assert "Pay with another card" not in seen
    assert "Cancel the order" not in seen
    assert client.post(f"/orders/{order}/cancel/").status_code == 409
    assert Order.objects.get(id=order).payment_method == "pm_card_visa"
    carry_out()
    assert "preparing it" in page(client, order)
    row = Order.objects.get(id=order)
    assert (row.payment_method, row.asked) == ("pm_card_sandbox_replyLost", None)


def test_a_cancellation_that_came_too_late_is_admitted(client):
    order = placed(client)
    for _ in range(3):
        answer(ask())
    assert client.post(f"/orders/{order}/cancel/").status_code == 303
    assert "We have passed your cancellation on" in page(client, order)
    finish_all()  # the confirmation goes out before the engine comes to the request
    seen = page(client, order)
    assert "We have passed your cancellation on" in seen
    assert "hx-get" in seen
    carry_out()
    seen = page(client, order)
    assert "it cannot be cancelled any more" in seen
    assert "Your order is confirmed" in seen
    assert "hx-get" not in seen
    assert "cannot be cancelled" not in page(Client(), order)
    assert not posted("cancelled")


def test_a_mend_that_came_too_late_changes_nothing_of_the_order(client):
    order = sold_out(client)
    client.post(f"/orders/{order}/leave-out/", {"attempt": 1, "sku": "sku-1"})
    Step.objects.filter(mend_by__isnull=False).update(mend_by=DatabaseNow())
    supervise()
    carry_out()
    seen = page(client, order)
    assert "That came too late" in seen
    assert "Your order is being cancelled" in seen
    row = Order.objects.get(id=order)
    assert (row.total, row.lines.count()) == (3100, 2)
    finish_all()
    assert "That came too late" not in page(client, order)
    assert len(posted("cancelled")) == 1


@pytest.mark.django_db(transaction=True)
def test_a_request_is_noted_and_posted_together_or_not_at_all(client):
    order = declined(client)
    with pytest.raises(DatabaseError), writes_fail("orders_order", "UPDATE", "53100"):
        mending.other_card(order, 1, "pm_card_visa")
    carry_out()
    assert not Event.objects.filter(kind="resubmitted").exists()
    assert "Pay with another card" in page(client, order)


def test_of_two_steps_that_failed_each_is_mended_by_itself(client):
    order = placed(client, sku_0=2, sku_1=1)
    answer(
        ask(),
        authorize_payment="generic_decline|no",
        reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand",
    )
    act(client, order, "card", **VISA)
    assert Order.objects.get(id=order).asked is None  # the task is still in error
    seen = page(client, order)
    assert "Pay with another card" not in seen
    act(client, order, "leave-out", attempt=1, sku="sku-1")
    finish_all()
    assert "confirmed" in page(client, order)
    assert Order.objects.get(id=order).total == 2000
