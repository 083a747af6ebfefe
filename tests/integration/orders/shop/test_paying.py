"""Payments that await their customer or a person: the page, the letters, and what follows."""

import pytest
from django.conf import settings
from django.test import Client
from django.utils import translation

from orchestration.api import StepState
from orchestration.testing import webhooks
from orchestration.testing.outcomes import done, later, rejected
from orders.lifecycle import changes, paying, tracking
from orders.lifecycle.loading import page
from orders.lifecycle.message import WORKFLOW
from orders.lifecycle.queries import progress
from orders.models import Order
from tests.support.page import elements
from tests.support.shop import (
    fill_cart,
    open_checkout,
    order_in,
    order_page,
    posted,
    products,
    send,
    verdict,
)

pytestmark = pytest.mark.django_db
BANK = "https://bank.test/pi_1"
TRANSFER = {
    "holder": "Kettlewell", "iban": "DE00 1001", "bic": "SANDDEXX", "reference": "REF1", "amount": 2000,
}  # fmt: skip
ACCEPTED = {"id": "pi_1", "status": "requires_action", "page": BANK}
ASKED = later(ACCEPTED, id="pi_1", look=300)
AWAITED = later({**ACCEPTED, "transfer": TRANSFER}, id="pi_1", look=86_400)
HELD = done(id="pi_1", status="requires_capture")


def placed_by(client, method):
    products()
    fill_cart(client, sku_0=2)
    return order_in(send(client, open_checkout(client), payment_method=method))


@pytest.fixture
def asked(run, client):
    """An order whose bank asks the customer."""
    run.script("payment.authorize", ASKED)
    run.answer("payment.authorize", ASKED)
    order = placed_by(client, "pm_card_threeDSecure2Required")
    run.go()
    return order


@pytest.fixture
def transferred(run, client):
    """An order whose customer is to transfer the amount."""
    run.script("payment.authorize", AWAITED)
    run.answer("payment.authorize", AWAITED)
    order = placed_by(client, "customer_balance")
    run.go()
    return order


def reported(run, kind, **intent):
    """Have the provider report an event of the payment."""
    shown = {"id": "pi_1", "capture_method": "manual", **intent}
    event = {"id": "evt_1", "type": f"payment_intent.{kind}", "data": {"object": shown}}
    run.receive("payment", webhooks.stripe(event, settings.PAYMENT_WEBHOOK_SECRETS[0]))
    run.go()


def steps(order):
    return {step.name: step.state for step in progress(order).steps if step.direction == "do"}


def test_bank_that_asks_is_shown_to_the_customer_alone(client, asked):
    seen = order_page(client, asked)
    assert verdict(seen) == paying.AWAITS_BANK
    assert elements(seen).only("#pay").only("a").attributes["href"] == BANK
    stub = order_page(Client(), asked)
    assert BANK not in stub
    assert verdict(stub) == paying.AWAITS_BANK


def test_page_that_the_bank_returns_to_is_that_of_the_order(asked):
    assert page(asked) == f"{settings.SITE_URL}{Order.objects.get(id=asked).get_absolute_url()}"
    request = next(step for step in progress(asked).steps if step.name == paying.CARD).request
    assert request["payment_method"] == "pm_card_threeDSecure2Required"


@pytest.mark.parametrize("address", ["javascript:alert(1)", "", "data:text/html,x"])
def test_address_of_a_bank_that_is_none_has_no_link(run, client, address):
    run.script("payment.authorize", later({"id": "pi_1", "page": address}, id="pi_1", look=20))
    order = placed_by(client, "pm_card_threeDSecure2Required")
    run.go()
    assert verdict(order_page(client, order)) == paying.AWAITS_BANK
    assert not elements(order_page(client, order)).only("#pay").all("a")


def test_confirmed_payment_completes_the_order_once(run, client, asked):
    for _ in range(2):  # the provider sends an event again
        reported(run, "amount_capturable_updated", status="requires_capture")
    assert verdict(order_page(client, asked)) == tracking.CONFIRMED
    assert len(run.calls("payment.capture")) == 1


def test_webhook_before_the_answer_of_the_request_counts(run, client):
    run.script("payment.authorize", ASKED)
    order = placed_by(client, "pm_card_threeDSecure2Required")
    reported(run, "amount_capturable_updated", status="requires_capture")
    run.go()
    assert verdict(order_page(client, order)) == tracking.CONFIRMED


def test_lost_webhook_is_made_up_for_by_a_question(run, client, asked):
    run.answer("payment.authorize", ASKED, HELD)
    run.wait(650)
    assert verdict(order_page(client, asked)) == tracking.CONFIRMED


def test_refused_payment_is_offered_another_card(run, client, asked):
    error = {"code": "payment_intent_authentication_failure", "message": "No."}
    reported(run, "payment_failed", status="requires_payment_method", last_payment_error=error)
    seen = order_page(client, asked)
    assert verdict(seen).startswith(str(paying.REASONS[error["code"]]))
    offered = {
        radio.attributes["value"] for radio in elements(seen).all('input[name="payment_method"]')
    }
    assert "customer_balance" not in offered  # it takes longer than the order waits for
    run.script("payment.authorize", HELD)
    assert changes.other_card(asked, 1, "pm_card_visa") is None
    run.go()
    assert verdict(order_page(client, asked)) == tracking.CONFIRMED


def test_abandoned_payment_is_reminded_of_and_undone(run, client, asked):
    run.wait(1_100)
    assert posted("reminder") == []
    run.wait(200)
    (letter,) = posted("reminder")
    assert "bank" in letter["text"]
    run.wait(600)
    run.finish()
    assert verdict(order_page(client, asked)) == f"{paying.NOT_PAID} {tracking.CANCELLED}"
    assert run.task(WORKFLOW, str(asked)).state == "undone"
    assert len(run.calls("payment.void")) == 1
    assert run.calls("payment.capture") == []
    assert len(posted("cancelled")) == 1


def test_transfer_is_explained_on_the_page_and_by_a_letter(run, client, transferred):
    seen = order_page(client, transferred)
    assert verdict(seen) == paying.AWAITS_TRANSFER
    assert all(text in seen for text in ("DE00 1001", "REF1", "SANDDEXX", "€20.00"))
    (letter,) = posted("transfer")
    assert "DE00 1001" in letter["text"]
    with translation.override("de"):
        assert str(paying.AWAITS_TRANSFER) != verdict(seen)


def test_transfer_that_arrives_after_days_is_not_captured(run, client, transferred):
    run.wait(3_600)
    assert posted("reminder") == []  # that of cards does not count
    run.wait(4 * 86_400)
    assert len(posted("reminder")) == 1
    reported(run, "succeeded", status="succeeded", capture_method="automatic")
    assert verdict(order_page(client, transferred)) == tracking.CONFIRMED
    assert steps(transferred)["capture_payment"] is StepState.SKIPPED
    assert run.calls("payment.capture") == []
    assert len(posted("transfer")) == 1


def test_transfer_that_does_not_arrive_is_undone_after_seven_days(run, client, transferred):
    run.wait(7 * 86_400 - 60)
    assert verdict(order_page(client, transferred)) == paying.AWAITS_TRANSFER
    run.wait(120)
    run.finish()
    assert verdict(order_page(client, transferred)) == f"{paying.NOT_PAID} {tracking.CANCELLED}"


def test_cancelled_order_of_a_transfer_gives_the_money_back(run, client, transferred):
    run.script("notification.send", rejected("busy"))
    reported(run, "succeeded", status="succeeded", capture_method="automatic")
    assert changes.cancel(transferred) is None
    run.finish()
    assert verdict(order_page(client, transferred)) == tracking.REFUNDED


@pytest.fixture
def risky(run, client):
    """An order that a person decides about."""
    run.script(
        "payment.authorize", done(id="pi_1", status="requires_capture", risk=75, review=True)
    )
    order = placed_by(client, "pm_card_riskLevelElevated")
    run.go()
    return order


def test_risky_order_goes_on_once_a_person_accepts_it(run, client, risky):
    assert verdict(order_page(client, risky)) == paying.REVIEWING
    assert run.calls("shipping.book") == []
    run.complete(run.task(WORKFLOW, str(risky)), "review_order", {"note": "called them"})
    run.go()
    assert verdict(order_page(client, risky)) == tracking.CONFIRMED


@pytest.mark.parametrize("decided", [True, False])
def test_risky_order_that_is_not_accepted_is_undone(run, client, risky, decided):
    task = run.task(WORKFLOW, str(risky))
    if decided:
        run.complete(task, "review_order", refused="too_risky")
    run.wait(4 * 3600 + 60)
    run.finish()
    assert verdict(order_page(client, risky)) == f"{paying.NOT_ACCEPTED} {tracking.CANCELLED}"
    assert sorted(task.undone) == ["authorize_payment", "reserve_stock"]


def test_expired_authorization_is_charged_to_another_card(run, client):
    run.script(
        "payment.capture", rejected("authorization_expired"), done(id="pi_2", status="succeeded")
    )
    order = placed_by(client, "pm_card_sandbox_authorizationExpires")
    run.go()
    seen = order_page(client, order)
    assert verdict(seen).startswith(str(paying.REASONS["authorization_expired"]))
    assert elements(seen).all("#fix-capture_payment-1")
    assert changes.other_card(order, 1, "pm_card_visa") is None
    run.go()
    assert verdict(order_page(client, order)) == tracking.CONFIRMED
    assert run.calls("payment.capture")[-1].payload["payment_method"] == "pm_card_visa"


def test_plain_order_needs_neither_review_nor_reminder(run, client):
    order = placed_by(client, "pm_card_visa")
    run.finish()
    assert steps(order)["review_order"] is StepState.SKIPPED
    assert posted("reminder") == posted("transfer") == []
