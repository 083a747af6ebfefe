"""Goods that are made to order: not reserved, and finished by a person before they are sent."""

import pytest

from orchestration.api import StepState
from orchestration.testing.outcomes import done, rejected
from orders.lifecycle import changes, special, tracking
from orders.lifecycle.message import WORKFLOW
from orders.lifecycle.queries import progress
from orders.models import Order, Product
from tests.support.gifts import order_of
from tests.support.page import elements
from tests.support.shop import fill_cart, order_page, posted, products, verdict, visit

pytestmark = pytest.mark.django_db
DAY = 86_400


@pytest.fixture(autouse=True)
def _shelf():
    products()
    Product.objects.filter(sku="sku-0").update(made_within_days=14)


@pytest.fixture
def order(run, client):
    order = order_of(client)
    run.go()
    return order


def finish(run, order):
    run.complete(run.task(WORKFLOW, str(order)), "make_goods")
    run.go()


def test_order_is_sent_once_it_is_made(run, client, order):
    assert run.calls("inventory.reserve") == run.calls("shipping.book") == []
    assert len(run.calls("payment.authorize")) == 1
    assert verdict(order_page(client, order)) == special.MAKING
    finish(run, order)
    (booked,) = run.calls("shipping.book")
    assert booked.payload["reservation"] is None
    assert len(run.calls("payment.capture")) == 1
    assert verdict(order_page(client, order)) == tracking.CONFIRMED


def test_goods_in_stock_of_the_same_order_are_reserved(run, client):
    order = order_of(client, {"sku_0": 1, "sku_1": 2})
    run.go()
    (reserved,) = run.calls("inventory.reserve")
    assert reserved.payload["lines"] == [{"sku": "sku-1", "quantity": 2}]
    finish(run, order)
    assert isinstance(run.calls("shipping.book")[0].payload["reservation"], str)


def test_order_that_is_not_made_in_time_is_an_error_for_staff(run, order):
    run.wait(14 * DAY - 60)
    states = {step.name: step.state for step in progress(order).steps}
    assert states["make_goods"] is StepState.AWAITING
    run.wait(120)
    states = {step.name: step.state for step in progress(order).steps}
    assert states["make_goods"] is StepState.ERROR
    assert Order.objects.get(id=order).status == "failed"


def test_order_is_cancelled_while_it_is_made(run, client, order):
    assert changes.cancel(order) is None
    run.finish()
    assert Order.objects.get(id=order).status == "undone"
    assert len(run.calls("payment.void")) == 1


@pytest.mark.parametrize("address", ["/", "/products/slug-0/", "/cart/", "/checkout/"])
def test_days_are_shown_wherever_the_product_is(client, address):
    fill_cart(client, sku_0=1)
    shown = elements(visit(client, address)).all('[data-terms="made"]')
    assert "14" in shown[0].text


def test_letter_and_order_page_name_the_days(client, order):
    (letter,) = posted("received")
    assert "14 days" in letter["text"].replace("\n", " ")
    assert "14 days" in elements(order_page(client, order)).all("[data-order-note]")[0].text


def test_goods_in_stock_that_are_sold_out_are_not_left_out_of_what_is_made(run, client):
    """The inventory would have nothing to reserve: the customer waits, or cancels."""
    run.script("inventory.reserve", rejected("out_of_stock", "sku-1: none"))
    order = order_of(client, {"sku_0": 1, "sku_1": 2})
    run.go()
    with pytest.raises(changes.NothingLeft):
        changes.leave_out(order, 1, "sku-1")
    assert "leave-out" not in order_page(client, order)


def test_one_of_two_goods_in_stock_is_left_out(run, client):
    run.script("inventory.reserve", rejected("out_of_stock", "sku-1: none"), done(id="rsv_1"))
    order = order_of(client, {"sku_0": 1, "sku_1": 2, "sku_2": 1})
    run.go()
    assert changes.leave_out(order, 1, "sku-1") is None
    run.go()
    assert run.calls("inventory.reserve")[-1].payload["lines"] == [{"sku": "sku-2", "quantity": 1}]
    finish(run, order)
    assert run.calls("payment.capture")[0].payload["amount"] == 1000 + 1200
