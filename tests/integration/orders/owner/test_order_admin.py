"""What the owner sees in the admin: an order's money, and a day's figures."""

import csv
from datetime import UTC, date, datetime
from io import StringIO

import pytest

from orchestration.transitions.replies import record
from orders.figures import by_day, totals
from orders.lifecycle import snapshots
from orders.lifecycle.payments import balance, movements
from orders.models import DiscountCode, Order, ShippingPrice
from tests.support.engine import reply_to
from tests.support.operators import browser, person
from tests.support.page import page
from tests.support.shop import (
    answer,
    ask,
    buy,
    carry_out,
    declined,
    fill_cart,
    finish_all,
    inform,
    open_checkout,
    order_in,
    placed,
    send,
    token_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelf", "rates")]
BERLIN = {"street": "Kastanienallee 1", "postcode": "10435", "city": "Berlin", "country": "DE"}
FIGURES = "/admin/orders/order/figures/"


@pytest.fixture
def owner():
    return browser(person("boss", is_staff=True, is_superuser=True))


def moved(order):
    moves = movements(snapshots.of(Order.objects.get(id=order)))
    return [(move.kind, move.amount) for move in moves], balance(moves)


def figures_of(order):
    """Return the figures of the only day with an order."""
    Order.objects.filter(id=order).update(created_at=datetime(2026, 3, 1, 12, tzinfo=UTC))
    (row,) = by_day(date(2026, 3, 1), date(2026, 3, 1))
    return row


def test_money_of_an_order_that_is_paid(client):
    order = placed(client)
    assert moved(order) == ([], 0)
    answer(ask())
    assert moved(order) == ([("authorized", 2000)], 0)
    finish_all()
    assert moved(order) == ([("authorized", 2000), ("captured", 2000)], 2000)


def test_money_of_an_order_that_is_undone(client):
    order = placed(client)
    for _ in range(3):  # reserve and authorize, ship, capture
        answer(ask())
    assert client.post(f"/orders/{order}/cancel/").status_code == 303
    carry_out()
    finish_all()
    assert moved(order) == (
        [("authorized", 2000), ("captured", 2000), ("refunded", 2000), ("released", 2000)],
        0,
    )


def test_money_of_a_transfer(client, owner):
    fill_cart(client, sku_0=2)
    order = order_in(send(client, open_checkout(client), payment_method="customer_balance"))
    carry_out()
    requests = ask()
    paid = reply_to(requests.pop("authorize_payment"), result={"id": "pi_1", "taken": True})
    record([paid])
    answer(requests)
    assert moved(order) == ([("captured", 2000)], 2000)
    assert figures_of(order).gross == 2000
    assert client.post(f"/orders/{order}/cancel/").status_code == 303
    carry_out()
    finish_all()
    assert moved(order) == ([("captured", 2000), ("refunded", 2000)], 0)
    assert figures_of(order).refunds == 2000


def test_money_of_a_declined_card(client):
    assert moved(declined(client)) == ([], 0)


def test_order_in_the_admin_shows_its_money_and_leads_to_its_task(client, owner):
    order = buy(client)
    carry_out()
    finish_all()
    shown = page(owner.get(f"/admin/orders/order/{order}/change/"))
    assert "captured: €20.00" in shown.only(".field-money").text
    assert "Total: €20.00" in shown.only(".field-price").text
    link = shown.only(".field-task").only("a").attributes["href"]
    assert "/ops/tasks/" in owner.get(link)["Location"]


def test_order_in_the_admin_without_a_snapshot(client, owner):
    order = buy(client)
    carry_out()
    Order.objects.filter(id=order).update(snapshot=None, status="received")
    assert owner.get(f"/admin/orders/order/{order}/change/").status_code == 200


@pytest.fixture
def day(client):
    """Have a day with a paid order, one that was refunded, and one that is not paid."""
    ShippingPrice.objects.create(price=490)
    DiscountCode.objects.create(code="SPRING", percent=1000)
    fill_cart(client, sku_0=2)
    token = token_of(send(client, open_checkout(client), discount_code="SPRING", **BERLIN))
    paid = order_in(send(client, token, discount_code="SPRING", **BERLIN))
    carry_out()
    finish_all()
    fill_cart(client, sku_1=1)
    token = open_checkout(client)
    refunded = order_in(send(client, token, **BERLIN))
    carry_out()
    for _ in range(3):
        answer(ask())
    client.post(f"/orders/{refunded}/cancel/")
    carry_out()
    finish_all()
    open_order = placed(client)
    inform()
    orders = [paid, refunded, open_order]
    Order.objects.filter(id__in=orders).update(created_at=datetime(2026, 3, 1, 12, tzinfo=UTC))
    return date(2026, 3, 1)


def test_figures_of_a_day(day, django_assert_num_queries):
    with django_assert_num_queries(1):
        (row,) = by_day(day, day)
    assert (row.day, row.currency, row.orders, row.charged) == (day, "EUR", 3, 2)
    # 20.00 - 2.00 + 4.90, and 11.00 + 4.90; 19 % of both are in it
    assert (row.gross, row.shipping, row.discount, row.refunds) == (2290 + 1590, 980, 200, 1590)
    assert row.tax == 366 + 254
    assert row.net == row.gross - row.tax
    assert totals([row, row])[0].gross == 2 * row.gross


def test_days_are_of_the_shops_zone(client, settings):
    settings.SHOP_TIME_ZONE = "Pacific/Auckland"
    order = placed(client)
    Order.objects.filter(id=order).update(created_at=datetime(2026, 3, 1, 12, tzinfo=UTC))
    (row,) = by_day(date(2026, 3, 2), date(2026, 3, 2))
    assert row.day == date(2026, 3, 2)
    assert by_day(date(2026, 3, 1), date(2026, 3, 1)) == []


def test_figures_page_and_csv(owner, day):
    dates = {"first": day.isoformat(), "last": day.isoformat()}
    shown = page(owner.get(FIGURES, dates))
    assert "€38.80" in shown.only('[data-day="2026-03-01"]').text
    rows = list(csv.DictReader(StringIO(owner.get(FIGURES, {**dates, "format": "csv"}).text)))
    assert rows == [
        {"day": "2026-03-01", "currency": "EUR", "orders": "3", "charged": "2", "gross": "38.80",
         "net": "32.60", "tax": "6.20", "shipping": "9.80", "discount": "2.00", "refunds": "15.90"}
    ]  # fmt: skip


def test_figures_without_orders(owner):
    assert owner.get(FIGURES).status_code == 200
    text = owner.get(FIGURES, {"first": "2020-01-01", "last": "2020-01-01", "format": "csv"}).text
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    "dates",
    [
        {"first": "2026-03-02", "last": "2026-03-01"},
        {"first": "2020-01-01", "last": "2026-03-01"},
        {"first": "x", "last": "2026-03-01"},
        {"first": "0000-00-00", "last": "\0"},
        {"first": "9999-12-31", "last": "9999-12-31"},
        {"first": "0001-01-01", "last": "0001-01-01"},
    ],
)
@pytest.mark.parametrize("form", ["", "csv"])
def test_figures_of_odd_days_are_refused(owner, dates, form):
    assert owner.get(FIGURES, {**dates, "format": form}).status_code == 422


def test_figures_are_for_those_who_may_see_orders():
    assert browser(person("ann", is_staff=True)).get(FIGURES).status_code == 403
    assert browser(person("eve", "view_order", is_staff=True)).get(FIGURES).status_code == 200
    assert browser().get(FIGURES).status_code == 302


def export(client, orders):
    selected = {"action": "as_csv", "_selected_action": [str(order) for order in orders]}
    answer = client.post("/admin/orders/order/", selected)
    return list(csv.DictReader(StringIO(answer.getvalue().decode())))


def test_orders_are_exported_with_net_tax_and_gross(client, owner):
    ShippingPrice.objects.create(price=490)
    fill_cart(client, sku_0=2)
    order = order_in(send(client, open_checkout(client), **BERLIN))
    carry_out()
    Order.objects.filter(id=order).update(created_at=datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    assert export(owner, [order]) == [
        {"number": Order.objects.get().number, "placed_at": "2026-03-02T00:30:00+01:00", "country": "DE",
         "status": "received", "currency": "EUR", "goods": "20.00", "shipping": "4.90", "discount": "0.00",
         "gross": "24.90", "net": "20.92", "tax": "3.98"}
    ]  # fmt: skip


def test_export_of_orders_is_for_those_who_may_see_them(client):
    order = placed(client)
    viewer = browser(person("eve", "view_order", is_staff=True))
    assert len(export(viewer, [order])) == 1
    other = browser(person("ann", "view_product", is_staff=True))
    selected = {"action": "as_csv", "_selected_action": [str(order)]}
    assert other.post("/admin/orders/order/", selected).status_code == 403
