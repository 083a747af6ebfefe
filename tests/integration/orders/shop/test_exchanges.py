"""Exchanges: what is sent for goods that came back, and that nothing is paid twice."""

from uuid import uuid4

import pytest
from django.db import transaction

from orchestration import api
from orchestration.models import Task
from orchestration.testing.outcomes import done, in_doubt
from orders.figures import by_day, totals
from orders.lifecycle import refunds, returns, snapshots
from orders.lifecycle.exchange_offers import NotExchangeable, TooDear
from orders.lifecycle.paying import payment_id
from orders.models import (
    DiscountCode,
    DiscountUse,
    Exchange,
    Order,
    Placement,
    Product,
    Refund,
    Return,
)
from orders.shop.exchange_wish import NotOffered
from tests.support.exchanges import ask, exchanged, inspected, stands
from tests.support.gifts import gift_card_product, issued, order_of
from tests.support.shop import (
    fill_cart,
    open_checkout,
    order_in,
    products,
    send,
)

pytestmark = pytest.mark.django_db
LABEL = done(id="lbl_1", tracking="RET1")


@pytest.fixture
def order(run, client):
    """An order of two of sku-0 at 10.00 and one of sku-1 at 11.00, which is completed."""
    products()
    run.script("shipping.label", *[LABEL] * 6)
    fill_cart(client, sku_0=2, sku_1=1)
    order = order_in(send(client, open_checkout(client)))
    run.go()
    assert Order.objects.get(id=order).status == "confirmed"
    return order


def letters(kind):
    tasks = Task.objects.filter(workflow="tell_customer", reference__contains=kind)
    return [task.data["mail"] for task in tasks]


def test_same_is_sent_again_without_a_payment(run, order):
    paid_before = len(run.calls("payment.authorize"))
    row, new = exchanged(run, order, {"sku_0": 1}, {"sku_0": 1})
    run.go()
    new.refresh_from_db()
    assert (new.total, new.to_pay, new.payment_method, new.status) == (1000, 0, "none", "confirmed")
    assert [(line.sku, line.quantity) for line in new.lines.all()] == [("sku-0", 1)]
    assert len(run.calls("payment.authorize")) == paid_before
    assert run.calls("shipping.book")[-1].payload["order"] == str(new.id)
    assert (row.paid, Refund.objects.count()) == (0, 0)
    assert stands(order) == (3100, 0, 1000)
    about = Task.objects.get(reference=str(new.id), workflow="process_order")
    assert (about.about_workflow, about.about_reference) == ("return_order", str(row.id))
    (letter,) = letters("replacement")
    assert new.number in letter["subject"]
    assert not letters(f"{new.id}:received")


def test_cheaper_product_has_the_rest_paid_back(run, order):
    row, new = exchanged(run, order, {"sku_1": 1}, {"sku_0": 1})
    run.go()
    assert (new.total, row.paid) == (1000, 100)
    assert [call.payload["amount"] for call in run.calls("payment.refund")] == [100]
    assert Order.objects.get(id=order).refunded == 100
    assert stands(order) == (3100, 100, 1000)


def test_dearer_product_is_refused_and_changes_nothing(order):
    with pytest.raises(TooDear) as refusal:
        ask(order, {"sku_0": 1}, {"sku_1": 1})
    assert refusal.value.left == 1000
    assert not Return.objects.exists()


def test_price_is_that_of_the_day_it_was_asked_for(run, order):
    row = ask(order, {"sku_1": 1}, {"sku_0": 1})
    Product.objects.filter(sku="sku-0").update(price=9000)
    row = inspected(run, row)
    assert Order.objects.get(id=row.replacement).total == 1000


def test_same_again_costs_what_was_paid_though_its_price_has_risen(run, order):
    Product.objects.filter(sku="sku-0").update(price=9000)
    row, new = exchanged(run, order, {"sku_0": 2}, {"sku_0": 2})
    assert (new.total, row.paid) == (2000, 0)
    with pytest.raises(TooDear):
        ask(order, {"sku_1": 1}, {"sku_0": 1})


@pytest.mark.parametrize(("percent", "paid", "state"), [(50, 500, "refunded"), (0, 0, "refused")])
def test_goods_that_are_not_sound_are_not_exchanged(run, order, percent, paid, state):
    row = inspected(run, ask(order, {"sku_0": 1}, {"sku_0": 1}), percent, "Scratched.")
    assert (row.state, row.paid, row.replacement) == (state, paid, None)
    assert Placement.objects.count() == 1
    if paid:
        words = Refund.objects.get().reason
        assert "Scratched." in words
        assert "exchange" in words


def test_exchange_needs_that_much_to_be_left(run, order):
    row = ask(order, {"sku_0": 2}, {"sku_0": 2})
    refunds.refund(order, 2500, "A chip.", id_=uuid4(), by=None)
    row = inspected(run, row)
    assert (row.state, row.paid, row.replacement) == ("refunded", 600, None)
    assert stands(order) == (3100, 3100, 0)


def test_refund_after_an_exchange_is_of_the_rest(run, order):
    exchanged(run, order, {"sku_0": 2}, {"sku_0": 2})
    with pytest.raises(refunds.TooMuch) as refusal:
        refunds.refund(order, 1101, "A chip.", id_=uuid4(), by=None)
    assert refusal.value.left == 1100
    refunds.refund(order, 1100, "A chip.", id_=uuid4(), by=None)
    assert stands(order) == (3100, 1100, 2000)


def test_returned_replacement_is_paid_back_once_by_the_first_payment(run, order):
    _row, new = exchanged(run, order, {"sku_0": 2}, {"sku_0": 2})
    run.go()
    back = inspected(run, returns.ask(new.id, {"sku-0": 2}, "other", id_=uuid4()))
    assert (back.state, back.paid) == ("refunded", 2000)
    (call,) = run.calls("payment.refund")
    payment = payment_id(snapshots.of(Order.objects.get(id=order)))
    assert call.payload == {"payment": payment, "amount": 2000}
    assert stands(order) == (3100, 2000, 0)
    assert refunds.left_of(Order.objects.get(id=new.id)) == 0
    with pytest.raises(refunds.TooMuch):
        refunds.refund(new.id, 1, "Again.", id_=uuid4(), by=None)
    with pytest.raises(refunds.TooMuch):
        refunds.refund(order, 1101, "Again.", id_=uuid4(), by=None)


def test_replacement_of_a_replacement_is_paid_by_the_first_order(run, order):
    _row, new = exchanged(run, order, {"sku_1": 1}, {"sku_1": 1})
    run.go()
    row, third = exchanged(run, new.id, {"sku_1": 1}, {"sku_0": 1})
    run.go()
    assert (third.total, row.paid) == (1000, 100)
    assert Exchange.objects.get(order=third.id).payer_id == order
    assert stands(order) == (3100, 100, 1000)
    assert refunds.left_of(Order.objects.get(id=new.id)) == 0
    back = inspected(run, returns.ask(third.id, {"sku-0": 1}, "other", id_=uuid4()))
    assert back.paid == 1000
    assert stands(order) == (3100, 1100, 0)


def test_staff_pay_part_of_a_replacement_back(run, order):
    _row, new = exchanged(run, order, {"sku_0": 2}, {"sku_0": 2})
    refund = refunds.refund(new.id, 300, "A chip.", id_=uuid4(), by=None)
    assert refund.order_id == order
    assert stands(order) == (3100, 300, 1700)
    again = refunds.refund(new.id, 300, "A chip.", id_=refund.id, by=None)
    assert (again.id, Refund.objects.count()) == (refund.id, 1)


def test_completed_message_that_comes_again_places_nothing_more(run, order):
    row, _new = exchanged(run, order, {"sku_1": 1}, {"sku_0": 1})
    message = run.task("return_order", str(row.id))
    again = api.Status(
        workflow="return_order", reference=str(row.id), number=99, kind=api.StatusKind.COMPLETED,
        at=row.created_at, detail={}, progress=message.progress,
    )  # fmt: skip
    with transaction.atomic():
        returns.receive([again])
    assert (Exchange.objects.count(), Refund.objects.count()) == (1, 1)


def test_answer_that_is_lost_while_the_replacement_is_reserved_reserves_once(run, order):
    row = ask(order, {"sku_0": 1}, {"sku_0": 1})
    run.script("inventory.reserve", in_doubt("timeout", happened=True), done(id="res_9"))
    row = inspected(run, row)
    run.finish()
    mine = [
        call for call in run.calls("inventory.reserve")
        if call.payload["order"] == str(row.replacement)
    ]  # fmt: skip
    assert len({call.key for call in mine}) == 1
    assert Order.objects.get(id=row.replacement).status == "confirmed"


def test_discount_goes_over_to_the_same_again_and_is_used_once(run, client):
    products()
    run.script("shipping.label", LABEL)
    DiscountCode.objects.create(code="TEN", percent=1000, currency="EUR", most=1)
    first = order_of(client, {"sku_0": 2}, discount_code="TEN")
    run.go()
    row, new = exchanged(run, first, {"sku_0": 2}, {"sku_0": 2})
    assert (new.total, new.charges["discount"], new.charges["code"]) == (1800, 200, "TEN")
    assert (row.paid, DiscountUse.objects.count()) == (0, 1)
    run.go()
    new.refresh_from_db()
    assert new.status == "confirmed"


def test_gift_card_that_paid_is_neither_emptied_nor_filled(run, client):
    products()
    run.script("shipping.label", LABEL, LABEL)
    card = issued(1500)
    first = order_of(client, {"sku_0": 2}, gift_card=card.unsent)
    run.go()
    _row, new = exchanged(run, first, {"sku_0": 2}, {"sku_0": 2})
    run.go()
    card.refresh_from_db()
    assert card.balance == 0
    inspected(run, returns.ask(new.id, {"sku-0": 2}, "other", id_=uuid4()))
    card.refresh_from_db()
    assert card.balance == 1500  # what a card paid goes back to it first
    assert [call.payload["amount"] for call in run.calls("payment.refund")] == [500]


def test_gift_cards_are_neither_sent_back_for_goods_nor_sent_for_them(run, client):
    products()
    gift_card_product(price=500)
    first = order_of(client, {"gift": 1, "sku_0": 1})
    run.go()
    with pytest.raises(NotExchangeable):
        ask(first, {"gift": 1}, {"sku_0": 1})
    with pytest.raises(NotOffered):
        ask(first, {"sku_0": 1}, {"gift": 1})


@pytest.mark.parametrize("change", [{"stock": "none"}, {"active": False}, {"currency": "CHF"}])
def test_product_that_is_not_sold_cannot_be_had(order, change):
    Product.objects.filter(sku="sku-0").update(**change)
    with pytest.raises(NotOffered):
        ask(order, {"sku_1": 1}, {"sku_0": 1})


def test_forged_replacement_is_set_aside(run, order):
    _row, new = exchanged(run, order, {"sku_0": 1}, {"sku_0": 1})
    run.go()
    data = dict(run.task("process_order", str(new.id)).progress.data)
    forged = str(uuid4())
    address = {
        "name": "Eve",
        "street": "Rue 1",
        "postcode": "3011",
        "city": "Bern",
        "country": "CH",
    }
    api.submit(
        "process_order", reference=forged, reply_to="shop",
        data={**data, "order": forged, "address": address, "customer": None},
    )  # fmt: skip
    run.go()
    assert not Order.objects.filter(id=forged).exists()


def test_figures_count_what_came_back_and_what_was_sent(run, order):
    _row, new = exchanged(run, order, {"sku_1": 1}, {"sku_0": 1})
    run.go()
    inspected(run, returns.ask(new.id, {"sku-0": 1}, "other", id_=uuid4()))
    day = Order.objects.get(id=order).created_at.date()
    (day,) = totals(by_day(day, Order.objects.get(id=new.id).created_at.date()))
    assert (day.gross, day.refunds) == (4100, 2100)  # 20.00 are left of 31.00
