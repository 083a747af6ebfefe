"""Changes of an order by its customer: another card, fewer goods, waiting, cancellation."""

import re
from datetime import datetime

import pytest
from django.db import DatabaseError
from django.test import Client

from orchestration import submission
from orchestration.models import Alert, Event, Step, Submission, Task
from orchestration.models.fields import DatabaseNow
from orders.lifecycle import changes, paying, tracking
from orders.lifecycle.access import link
from orders.lifecycle.stages import STEPS, UNDO_STEPS
from orders.models import Order, Placement
from orders.shop.forms import OtherCardForm
from orders.shop.views.order_changes import ALREADY
from tests.support.database import writes_fail
from tests.support.engine import staff, sweep
from tests.support.operators import LEADER
from tests.support.page import elements
from tests.support.shop import (
    answer,
    ask,
    buy,
    carry_out,
    current_stages,
    declined,
    finish_all,
    inform,
    order_page,
    order_verdict,
    placed,
    poll_address,
    posted,
    products,
    sold_out,
    verdict,
)

pytestmark = pytest.mark.django_db
DECLINED = f"{paying.PLAINLY_DECLINED} {tracking.NOTHING_CHARGED}"
VISA = {"attempt": 1, "payment_method": "pm_card_visa"}


@pytest.fixture(autouse=True)
def _shop():
    products()
    staff()


def offers(html):
    """Return the fixes and the cancellation that an order's page offers."""
    forms = elements(html).all('form[action^="/orders/"]')
    return {form["action"].split("/")[3] for form in forms}


def sold_out_in(html):
    """Return the products that an order's page names as sold out."""
    return [element["data-sold-out"] for element in elements(html).all("[data-sold-out]")]


def thanks(html):
    return "data-thanks" in html


def notices(html):
    """Return why the last request was refused, as an order's page shows it; empty without one."""
    return elements(html).texts("#too-late")


def supervise():
    sweep(LEADER)
    inform()


def act(client, order, what, **sent):
    """Request a change that is offered, and have the engine carry it out."""
    response = client.post(f"/orders/{order}/{what}/", sent)
    assert response.status_code == 303, response.text
    carry_out()
    return response


def test_other_card_after_a_decline(client):
    order = declined(client)
    seen = order_page(client, order)
    assert verdict(seen) == DECLINED
    assert not thanks(seen)
    until = Step.objects.get(name="authorize_payment").resolve_by
    assert datetime.fromisoformat(elements(seen).only("time[data-until]")["datetime"]) == until
    assert act(client, order, "card", **VISA)["Location"] == f"/orders/{order}/"
    asked = ask()
    assert asked["authorize_payment"].payload["payment_method"] == "pm_card_visa"
    assert asked["authorize_payment"].key.endswith(":authorize_payment:do:2")
    answer(asked)
    finish_all()
    assert Task.objects.get(reference=str(order)).state == "processed"
    assert order_verdict(client, order) == tracking.CONFIRMED
    assert not Alert.objects.filter(closed_at=None).exists()
    assert Event.objects.get(kind="resubmitted").actor == "customer"


def test_other_card_repeated_changes_nothing(client):
    order = declined(client)
    assert client.post(f"/orders/{order}/card/", VISA).status_code == 303
    for _ in ("while it is on its way", "when it is carried out"):
        again = client.post(f"/orders/{order}/card/", VISA)
        assert again.status_code == 409
        assert str(ALREADY) in again.text
        carry_out()
    answer(ask(), authorize_payment="insufficient_funds|no")
    assert client.post(f"/orders/{order}/card/", VISA).status_code == 409  # of the first decline
    act(client, order, "card", **{**VISA, "attempt": 2})
    assert Event.objects.filter(kind="resubmitted").count() == 2


@pytest.mark.parametrize(
    "sent",
    [
        {"attempt": 1},
        {"attempt": 1, "payment_method": "cash"},
        {"payment_method": "pm_card_visa"},
    ],
)
def test_other_card_with_an_invalid_form(client, sent):
    order = declined(client)
    response = client.post(f"/orders/{order}/card/", sent)
    assert response.status_code == 422
    (problem,), *_ = OtherCardForm(sent).errors.values()
    assert problem in response.text
    assert Step.objects.get(name="authorize_payment").process_state == "error"


@pytest.mark.parametrize(
    ("step", "what", "sent"),
    [
        ("authorize_payment", "card", VISA),
        ("reserve_stock", "wait", {"attempt": 1}),
        ("reserve_stock", "leave-out", {"attempt": 1, "sku": "sku-1"}),
    ],
)
def test_fix_of_another_failure_is_refused(client, step, what, sent):
    order = placed(client, sku_0=2, sku_1=1)
    answer(ask(), **{step: "not_allowed|the account is closed"})
    assert client.post(f"/orders/{order}/{what}/", sent).status_code == 409
    assert Step.objects.get(name=step).process_state == "error"
    assert not Event.objects.filter(kind="resubmitted").exists()
    assert "closed" not in order_page(client, order)


def test_other_card_by_the_link_of_the_email(client):
    order = declined(client)
    (letter,) = posted("action-needed")
    address = re.search(r"http://localhost:8000(\S+)", letter["text"])[1]
    assert address == link(order)
    assert address.replace("&", "&amp;") in letter["html"]
    assert "Your card was declined" in letter["text"]
    assert "We keep your order until" in letter["text"]
    guest = Client()
    seen = guest.get(address).text
    form = re.search(r'action="(/orders/[^"]+/card/[^"]*)"', seen)[1].replace("&amp;", "&")
    response = guest.post(form, VISA)
    assert (response.status_code, response["Location"]) == (303, address)


def test_failed_order_not_fixed_in_time_is_cancelled(client):
    order = declined(client)
    supervise()
    assert Order.objects.get(id=order).status == "failed"
    Step.objects.filter(resolve_by__isnull=False).update(resolve_by=DatabaseNow())
    supervise()
    assert order_verdict(client, order) == tracking.CANCELLING
    answer(ask())
    assert Order.objects.get(id=order).status == "undone"
    assert order_verdict(client, order) == f"{paying.PLAINLY_DECLINED} {tracking.CANCELLED}"
    (letter,) = posted("cancelled")
    assert "Nothing was charged" in letter["text"]
    assert client.post(f"/orders/{order}/card/", VISA).status_code == 409


def test_leave_out_of_a_product_pays_only_the_rest(client):
    order = sold_out(client)
    assert sold_out_in(order_page(client, order)) == ["sku-1"]
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


def test_leave_out_of_the_only_product_is_refused(client):
    order = sold_out(client, sku_1=1)
    assert "leave-out" not in offers(order_page(client, order))
    for sku in ("sku-1", "sku-7", ""):
        sent = {"attempt": 1, "sku": sku}
        assert client.post(f"/orders/{order}/leave-out/", sent).status_code == 409


def test_wait_retries_until_the_product_is_back(client):
    order = sold_out(client)
    act(client, order, "wait", attempt=1)
    for attempt in (2, 3):
        assert order_verdict(client, order) == tracking.WAITING
        Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
        sweep(LEADER)  # needs no worker of the shop
        answer(ask(), reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand")
        step = Step.objects.get(name="reserve_stock")
        assert (step.process_state, step.attempt) == ("pending", attempt)
        assert step.run_after is not None
    assert len(posted("action-needed")) == 1  # from before the wait
    Step.objects.filter(run_after__isnull=False).update(run_after=DatabaseNow())
    supervise()
    answer(ask())
    finish_all()
    assert order_verdict(client, order) == tracking.CONFIRMED


def test_wait_is_refused_for_an_order_of_an_application(client):
    order = sold_out(client)
    Placement.objects.filter(order=order).update(application="till")
    assert "wait" not in offers(order_page(client, order))
    assert client.post(f"/orders/{order}/wait/", {"attempt": 1}).status_code == 409


def test_wait_followed_by_a_declined_card(client):
    order = placed(client, sku_0=2, sku_1=1)
    asked = ask()
    card = {"authorize_payment": asked.pop("authorize_payment")}
    answer(asked, reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand")
    act(client, order, "wait", attempt=1)
    answer(card, authorize_payment="generic_decline|no")
    letter = posted("action-needed")[-1]
    assert "Your card was declined" in letter["text"]


def test_wait_that_expires(client):
    order = sold_out(client)
    act(client, order, "wait", attempt=1)
    step = Step.objects.get(name="reserve_stock")
    step.patience["until"] = step.pending_since.isoformat()
    step.run_after = step.pending_since
    step.save()
    supervise()
    answer(ask(), reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand")
    assert sold_out_in(order_page(client, order)) == ["sku-1"]
    assert len(posted("action-needed")) == 2


def test_cancel_refunds_and_shows_progress(client):
    order = placed(client)
    for _ in range(3):
        answer(ask())
    assert "cancel" in offers(order_page(client, order))
    act(client, order, "cancel")
    assert client.post(f"/orders/{order}/cancel/").status_code == 409
    seen = order_page(client, order)
    assert verdict(seen) == tracking.REFUNDING
    assert not thanks(seen)
    assert UNDO_STEPS["capture_payment"][1] in current_stages(seen)
    finish_all()
    assert order_verdict(client, order) == tracking.REFUNDED
    (letter,) = posted("cancelled")
    assert "You get back what you paid" in letter["text"]


def test_cancel_after_shipping_is_refused(client):
    order = placed(client)
    finish_all()
    assert "cancel" not in offers(order_page(client, order))
    response = client.post(f"/orders/{order}/cancel/")
    assert response.status_code == 409
    assert str(tracking.TOO_LATE) in response.text
    assert Task.objects.get(reference=str(order)).state == "processed"


def test_order_page_of_a_refused_submission(client):
    order = buy(client)
    Submission.objects.filter(reference=str(order)).update(data={})
    carry_out()
    seen = order_page(client, order)
    assert verdict(seen) == tracking.SET_ASIDE
    assert not thanks(seen)


def test_fixes_are_offered_to_the_customer_only(client):
    order = declined(client)
    assert offers(order_page(client, order)) == {"card", "cancel"}
    assert offers(order_page(Client(), order)) == set()


def test_poll_announces_a_change_once(client):
    order = placed(client)
    poll = poll_address(order_page(client, order))
    answer(ask())
    changed = client.get(poll).text
    announced = elements(changed).only("#announcement[hx-swap-oob]")
    assert announced.text == f"{tracking.WORKING} {STEPS['create_shipment'][1]}."
    poll = poll_address(changed)
    assert client.get(poll).status_code == 204
    only_older = re.sub(r"v=[^&]+", "v=older", poll)
    assert "hx-swap-oob" not in client.get(only_older).text


def test_changes_of_an_order_are_rate_limited(client):
    order = declined(client)
    codes = [client.post(f"/orders/{order}/card/", {}).status_code for _ in range(21)]
    assert codes == [422] * 20 + [429]


def test_emails_have_a_lower_priority(client):
    order = placed(client)
    submission.take(100)
    finish_all()
    letter = Task.objects.get(workflow="tell_customer")
    assert letter.state == "processed"
    assert letter.priority < Task.objects.get(reference=str(order)).priority


def test_pending_request_allows_no_other(client):
    order = declined(client)
    assert offers(order_page(client, order)) == {"card", "cancel"}
    client.post(f"/orders/{order}/card/", {**VISA, "payment_method": "pm_card_sandbox_replyLost"})
    seen = order_page(client, order)
    assert verdict(seen) == tracking.PASSED_ON
    assert offers(seen) == set()
    assert client.post(f"/orders/{order}/cancel/").status_code == 409
    assert Order.objects.get(id=order).payment_method == "pm_card_visa"
    carry_out()
    assert order_verdict(client, order) == tracking.WORKING
    row = Order.objects.get(id=order)
    assert (row.payment_method, row.asked) == ("pm_card_sandbox_replyLost", None)


def test_cancel_too_late_shows_a_notice(client):
    order = placed(client)
    for _ in range(3):
        answer(ask())
    assert client.post(f"/orders/{order}/cancel/").status_code == 303
    assert order_verdict(client, order) == tracking.CANCEL_ASKED
    finish_all()  # the confirmation is sent before the engine handles the request
    seen = order_page(client, order)
    assert verdict(seen) == tracking.CANCEL_ASKED
    assert poll_address(seen)
    carry_out()
    seen = order_page(client, order)
    assert notices(seen) == [tracking.TOO_LATE]
    assert verdict(seen) == tracking.CONFIRMED
    assert not poll_address(seen)
    assert notices(order_page(Client(), order)) == []
    assert not posted("cancelled")


def test_leave_out_too_late_changes_nothing(client):
    order = sold_out(client)
    client.post(f"/orders/{order}/leave-out/", {"attempt": 1, "sku": "sku-1"})
    Step.objects.filter(resolve_by__isnull=False).update(resolve_by=DatabaseNow())
    supervise()
    carry_out()
    seen = order_page(client, order)
    assert notices(seen) == [tracking.MOVED_ON]
    assert verdict(seen) == tracking.CANCELLING
    row = Order.objects.get(id=order)
    assert (row.total, row.lines.count()) == (3100, 2)
    finish_all()
    assert notices(order_page(client, order)) == []
    assert len(posted("cancelled")) == 1


@pytest.mark.django_db(transaction=True)
def test_change_that_cannot_be_saved_is_not_requested(client):
    order = declined(client)
    with pytest.raises(DatabaseError), writes_fail("orders_order", "UPDATE", "53100"):
        changes.other_card(order, 1, "pm_card_visa")
    carry_out()
    assert not Event.objects.filter(kind="resubmitted").exists()
    assert "card" in offers(order_page(client, order))


def test_two_failed_steps_are_fixed_separately(client):
    order = placed(client, sku_0=2, sku_1=1)
    answer(
        ask(),
        authorize_payment="generic_decline|no",
        reserve_stock="out_of_stock|sku-1: Only 0 of 'sku-1' are on hand",
    )
    act(client, order, "card", **VISA)
    assert Order.objects.get(id=order).asked is None  # the task is still in error
    assert "card" not in offers(order_page(client, order))
    act(client, order, "leave-out", attempt=1, sku="sku-1")
    finish_all()
    assert order_verdict(client, order) == tracking.CONFIRMED
    assert Order.objects.get(id=order).total == 2000
