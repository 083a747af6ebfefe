"""Orders that leave nothing to pay: no card is asked for, and the provider is not called."""

from datetime import UTC, date, datetime

import pytest

from orchestration.testing.outcomes import rejected
from orders.figures import by_day
from orders.lifecycle import changes, tracking
from orders.models import DiscountCode, GiftCard, Order
from tests.support.gifts import gift_card_product, issued, order_of
from tests.support.page import elements
from tests.support.shop import order_page, products, verdict

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _shelf():
    products()
    DiscountCode.objects.create(code="FREE", percent=100_00)


def test_order_with_a_code_of_all_is_free(run, client):
    order = order_of(client, discount_code="FREE", payment_method="")
    run.go()
    assert run.calls("payment.authorize") == run.calls("payment.capture") == []
    assert len(run.calls("inventory.reserve")) == len(run.calls("shipping.book")) == 1
    row = Order.objects.get(id=order)
    assert (row.total, row.status, row.handling) == (0, "confirmed", None)
    seen = order_page(client, order)
    assert verdict(seen) == tracking.CONFIRMED
    assert elements(seen).only('[data-sum="total"]').only("dd").text == "€0.00"


def test_free_order_is_undone_without_the_provider(run, client):
    run.script("shipping.book", rejected("address_unknown"))
    order = order_of(client, discount_code="FREE", payment_method="")
    run.go()
    assert changes.cancel(order) is None
    run.finish()
    assert Order.objects.get(id=order).status == "undone"
    assert run.calls("payment.void") == run.calls("payment.refund") == []


def test_free_order_without_a_product_stays_free(run, client):
    run.script("inventory.reserve", rejected("out_of_stock", "sku-1: none"))
    order = order_of(client, {"sku_0": 1, "sku_1": 1}, discount_code="FREE", payment_method="")
    run.go()
    assert changes.leave_out(order, 1, "sku-1") is None
    run.script("inventory.reserve", rejected("out_of_stock", "sku-0: none"))
    run.go()
    assert Order.objects.get(id=order).total == 0


def test_figures_count_what_is_bought_with_a_gift_card_and_not_the_card(run, client):
    gift_card_product()
    order_of(client, {"gift": 1})
    order_of(client, gift_card=issued(5000).unsent, payment_method="")
    order_of(client, discount_code="FREE", payment_method="")
    run.go()
    assert GiftCard.objects.count() == 2
    Order.objects.update(created_at=datetime(2026, 3, 1, 12, tzinfo=UTC))
    (row,) = by_day(date(2026, 3, 1), date(2026, 3, 1))
    assert (row.orders, row.charged, row.gross) == (3, 3, 2000)
