"""Pre-orders: they wait for the release, are paid then, and can be cancelled until then."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from orchestration.api import StepState
from orchestration.testing.outcomes import later, rejected
from orders.lifecycle import changes, paying, tracking
from orders.lifecycle.queries import progress
from orders.models import Order, Product
from tests.support.gifts import issued, order_of
from tests.support.page import elements
from tests.support.shop import fill_cart, order_page, posted, products, verdict, visit

pytestmark = pytest.mark.django_db
DAY = 86_400


@pytest.fixture(autouse=True)
def _shelf():
    products()
    now = timezone.localdate()
    Product.objects.filter(sku="sku-0").update(released_on=now + timedelta(days=5))
    Product.objects.filter(sku="sku-1").update(released_on=now + timedelta(days=9))


@pytest.fixture
def order(run, client):
    order = order_of(client)
    run.go()
    return order


def until_release(run, order):
    at = datetime.fromisoformat(Order.objects.get(id=order).handling["released_at"])
    run.wait((at - timezone.now()).total_seconds() + 60)


def test_nothing_is_reserved_or_charged_before_the_release(run, client, order):
    run.wait(3 * DAY)
    assert run.calls("inventory.reserve") == run.calls("payment.authorize") == []
    states = {step.state for step in progress(order).steps}
    assert states == {StepState.WAITING}
    run.wait(3 * DAY)
    assert len(run.calls("inventory.reserve")) == len(run.calls("payment.capture")) == 1
    assert verdict(order_page(client, order)) == tracking.CONFIRMED


def test_whole_order_waits_for_the_last_release(run, client):
    order_of(client, {"sku_0": 1, "sku_1": 1, "sku_2": 1})
    run.wait(7 * DAY)
    assert run.calls("payment.authorize") == []
    run.wait(3 * DAY)
    assert len(run.calls("inventory.reserve")[0].payload["lines"]) == 3


def test_order_page_and_letters_say_until_when_it_waits(client, order):
    at = Order.objects.get(id=order).handling["released_at"]
    assert at.startswith(str(timezone.localdate() + timedelta(days=5)))
    seen = elements(order_page(client, order))
    assert "09:00" in seen.only("#verdict").text
    assert seen.all("[data-order-note]")
    (letter,) = posted("received")
    assert "09:00" in letter["text"]


def test_waiting_order_is_cancelled_by_its_customer(run, client, order):
    assert client.post(f"/orders/{order}/cancel/").status_code == 303
    run.wait(10 * DAY)
    assert Order.objects.get(id=order).status == "undone"
    assert run.calls("inventory.reserve") == run.calls("payment.authorize") == []


def test_declined_card_reaches_the_customer_by_a_letter(run, client, order):
    run.script("payment.authorize", rejected("generic_decline"))
    until_release(run, order)
    (letter,) = posted("action-needed")
    assert f"/orders/{order}/" in letter["text"]


def test_bank_that_asks_then_is_a_letter_at_once_and_leaves_days(run, client, order):
    asked = later({"id": "pi_1", "status": "requires_action", "page": "https://bank.test"},
                  id="pi_1", look=86_400)  # fmt: skip
    run.script("payment.authorize", asked)
    run.answer("payment.authorize", asked)
    until_release(run, order)
    assert verdict(order_page(client, order)) == paying.AWAITS_BANK
    assert len(posted("confirm")) == 1
    run.wait(2 * DAY)
    assert verdict(order_page(client, order)) == paying.AWAITS_BANK
    run.wait(2 * DAY)
    run.finish()
    assert Order.objects.get(id=order).status == "undone"


def test_free_order_waits_as_well(run, client):
    order = order_of(client, gift_card=issued(9000).unsent, payment_method="")
    run.wait(3 * DAY)
    assert {step.state for step in progress(order).steps} == {StepState.WAITING}
    run.wait(3 * DAY)
    assert run.calls("payment.authorize") == []
    assert verdict(order_page(client, order)) == tracking.CONFIRMED


@pytest.mark.parametrize("address", ["/", "/products/slug-0/", "/cart/", "/checkout/"])
def test_release_is_shown_wherever_the_product_is(client, address):
    fill_cart(client, sku_0=1)
    assert elements(visit(client, address)).all('[data-terms="pre-order"]')


@pytest.mark.parametrize("address", ["/cart/", "/checkout/"])
def test_cart_and_checkout_say_that_the_order_waits(client, address):
    fill_cart(client, sku_0=1, sku_2=1)
    (note,) = elements(visit(client, address)).all("[data-order-note]")
    assert "09:00" in note.text


def test_product_that_is_released_is_one_in_stock(run, client):
    Product.objects.update(released_on=timezone.localdate() - timedelta(days=1))
    order = order_of(client)
    run.go()
    assert Order.objects.get(id=order).handling is None
    assert verdict(order_page(client, order)) == tracking.CONFIRMED


def test_sold_out_at_the_release_can_be_left_out(run, client):
    order = order_of(client, {"sku_0": 1, "sku_2": 1})
    run.script("inventory.reserve", rejected("out_of_stock", "sku-0: none"))
    run.go()
    until_release(run, order)
    assert changes.leave_out(order, 1, "sku-0") is None
