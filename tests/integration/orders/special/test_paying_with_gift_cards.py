"""Gift cards that pay: a part or all, never more than is on them, and given back with what is undone."""

from uuid import uuid4

import pytest

from orchestration.api import StepState
from orchestration.dead_letters.actions import DeadLetterFilter, close, retry
from orchestration.models import Submission
from orchestration.testing.outcomes import rejected
from orders.handling import Handling
from orders.lifecycle import changes, gift_cards, placement, refunds, special, tracking
from orders.lifecycle.message import WORKFLOW
from orders.lifecycle.queries import progress
from orders.models import GiftCard, GiftUse, Order, Placement, Product, Refund
from orders.rate_limit import Limit
from tests.support.gifts import issued, order_of, sums
from tests.support.operators import browser, person
from tests.support.page import elements, page
from tests.support.shop import (
    carry_out,
    fill_cart,
    message,
    open_checkout,
    order_page,
    posted,
    products,
    send,
    token_of,
    verdict,
)
from tests.support.shop_role import Visitor, make_role

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _shelf():
    products()


def balance():
    return GiftCard.objects.get().balance


def paid_in_part(run, client, **fields):
    """Place an order of 20.00 with a card that pays 15.00; return its id."""
    order = order_of(client, gift_card=issued(1500).unsent, **fields)
    run.go()
    return order


def test_part_is_paid_by_the_card_and_the_rest_is_charged(run, client):
    order = paid_in_part(run, client)
    assert [call.payload["amount"] for call in run.calls("payment.authorize")] == [500]
    assert [call.payload["amount"] for call in run.calls("payment.capture")] == [500]
    assert balance() == 0
    seen = elements(order_page(client, order))
    assert seen.only('[data-sum="gift_card"]').only("dd").text == "−€15.00"  # noqa: RUF001
    assert seen.only('[data-sum="to_pay"]').only("dd").text == "€5.00"
    (letter,) = posted("received")
    assert "€5.00" in letter["text"]


def test_card_that_pays_all_needs_no_other_payment(run, client):
    order = order_of(client, gift_card=issued(5000).unsent, payment_method="")
    run.go()
    assert run.calls("payment.authorize") == run.calls("payment.capture") == []
    assert len(run.calls("shipping.book")) == 1
    assert balance() == 3000
    seen = order_page(client, order)
    assert verdict(seen) == tracking.CONFIRMED
    assert Order.objects.get(id=order).payment_method == "none"
    states = {step.name: step.state for step in progress(order).steps}
    assert states["authorize_payment"] is states["capture_payment"] is StepState.SKIPPED


def test_choice_of_cards_is_not_offered_where_nothing_is_left_to_pay(client):
    fill_cart(client, sku_0=2)
    part = elements(sums(client, gift_card=issued(5000).unsent).text)
    assert part.all("#free.free")
    assert "€0.00" in part.only("#place").text
    part = elements(sums(client, gift_card=issued(100).unsent).text)
    assert not part.all("#free.free")


def test_order_that_is_not_free_needs_a_payment(client):
    fill_cart(client, sku_0=2)
    card = issued(1500)
    open_checkout(client)
    token = token_of(sums(client, gift_card=card.unsent))
    assert send(client, token, gift_card=card.unsent, payment_method="").status_code == 422
    assert not Placement.objects.exists()


def test_token_of_a_free_order_does_not_make_another_one_free(client):
    fill_cart(client, sku_0=2)
    open_checkout(client)
    token = token_of(sums(client, gift_card=issued(5000).unsent))
    assert send(client, token, payment_method="").status_code == 422
    assert not Placement.objects.exists()


def test_sent_again_is_paid_once(client):
    fill_cart(client, sku_0=2)
    card = issued(1500)
    token = token_of(sums(client, gift_card=card.unsent))
    first = send(client, token, gift_card=card.unsent)
    assert send(client, token, gift_card=card.unsent)["Location"] == first["Location"]
    assert (balance(), GiftUse.objects.count()) == (0, 1)


@pytest.mark.parametrize("typed", ["0000-0000-0000-0000", "x", "' OR 1=1"])
def test_unknown_and_empty_cards_get_the_same_answer(client, typed):
    fill_cart(client, sku_0=2)
    empty = issued(1500)
    GiftCard.objects.update(balance=0)
    texts = {
        elements(sums(client, gift_card=code).text).only("#card-wrong").text
        for code in (typed, empty.unsent)
    }
    assert len(texts) == 1
    assert texts != {""}


def test_wrong_card_is_an_error_of_its_field_and_orders_nothing(client):
    fill_cart(client, sku_0=2)
    answer = send(client, open_checkout(client), gift_card="0000-0000-0000-0000")
    assert answer.status_code == 422
    assert 'id="id_gift_card_error"' in answer.text
    assert not Placement.objects.exists()


def test_tries_of_codes_are_limited(client, monkeypatch):
    monkeypatch.setattr(gift_cards, "GUESSES", Limit("gift-card", most=2, seconds=600))
    fill_cart(client, sku_0=2)
    card = issued(1500)
    for _ in range(2):
        sums(client, gift_card="0000-0000-0000-0000")
    part = elements(sums(client, gift_card=card.unsent).text)
    assert part.only("#card-wrong").text == str(gift_cards.GUESSES.refusal_text)
    assert not part.all('[data-sum="gift_card"]')


def test_card_of_another_currency_or_that_is_void_pays_nothing():
    card = issued(1500)
    for change in ({"currency": "USD"}, {"currency": "EUR", "void": True, "balance": 0}):
        GiftCard.objects.update(**change)
        with pytest.raises(gift_cards.NotValid):
            gift_cards.find(card.unsent)


def test_undone_order_gives_back_once(run, client):
    run.script("shipping.book", rejected("address_unknown"))
    order = paid_in_part(run, client)
    assert changes.cancel(order) is None
    run.finish()
    for _ in range(2):
        gift_cards.give_back([order])
    assert balance() == 1500
    assert verdict(order_page(client, order)).endswith(str(special.CARD_BACK))
    assert str(special.CARD_BACK) in posted("cancelled")[0]["text"].replace("\n", " ")


def test_order_that_is_closed_gives_back(client):
    card = issued(1500)
    order = order_of(client, gift_card=card.unsent)
    Product.objects.filter(sku="sku-0").update(sku="gone")
    carry_out()
    assert balance() == 0  # staff may mend it
    close(DeadLetterFilter(kind="submission", name=WORKFLOW), by="ann", reason="no such product")
    carry_out()
    assert balance() == 1500
    Product.objects.filter(sku="gone").update(sku="sku-0")
    retry(DeadLetterFilter(kind="submission", name=WORKFLOW, state="closed"), by="ann")
    carry_out()
    assert not Order.objects.filter(id=order).exists()  # what paid for it is on the card again


def test_refund_goes_to_the_card_first_and_never_beyond_what_each_paid(run, client):
    order = paid_in_part(run, client)
    first = refunds.refund(order, 400, "A chip.", id_=uuid4(), by=None)
    assert (first.on_card, balance()) == (400, 0)  # once its task has ended
    run.go()
    assert (run.calls("payment.refund"), balance()) == ([], 400)
    second = refunds.refund(order, 1600, "All.", id_=uuid4(), by=None)
    run.go()
    assert second.on_card == 1100
    assert [call.payload["amount"] for call in run.calls("payment.refund")] == [500]
    assert balance() == 1500
    with pytest.raises(refunds.TooMuch):
        refunds.refund(order, 1, "More.", id_=uuid4(), by=None)
    text = run.task("refund_order", str(second.id)).progress.data["mail"]["text"]
    assert "€11.00" in text


def test_refund_of_an_order_that_a_card_paid_asks_no_provider(run, client):
    order = order_of(client, gift_card=issued(5000).unsent, payment_method="")
    run.go()
    refunds.refund(order, 2000, "All.", id_=uuid4(), by=None)
    run.go()
    assert run.calls("payment.refund") == []
    assert (balance(), Refund.objects.get().state) == (5000, "paid")
    owner = browser(person("boss", is_staff=True, is_superuser=True))
    assert owner.get(f"/admin/orders/order/{order}/change/").status_code == 200


def test_order_without_a_product_takes_less_of_the_card(run, client):
    run.script("inventory.reserve", rejected("out_of_stock", "sku-1: none"))
    order = order_of(client, {"sku_0": 2, "sku_1": 1}, gift_card=issued(1500).unsent)
    run.go()
    assert changes.leave_out(order, 1, "sku-1") is None
    run.script("inventory.reserve", rejected("x"))
    run.go()
    row = Order.objects.get(id=order)
    # 16.00 were authorized: they are captured, and the card pays what is above
    assert (row.total, row.to_pay, row.handling["gift_card"]) == (2000, 1600, 400)
    assert (balance(), GiftUse.objects.get().amount) == (1100, 400)
    assert row.fingerprint


def test_order_that_says_a_card_paid_where_none_did_is_set_aside(run):
    order = message(handling=Handling(gift_card=500))
    placement.place(message(order.order), "a" * 64)
    Submission.objects.filter(workflow=WORKFLOW).update(data=order.as_json())
    carry_out()
    assert not Order.objects.exists()
    assert Placement.objects.get().aside == "refused"


def test_shop_in_its_own_role_takes_cards():
    card = issued(1500)
    make_role()
    visitor = Visitor()
    fill_cart(visitor, sku_0=2)
    token = token_of(sums(visitor, gift_card=card.unsent))
    assert send(visitor, token, gift_card=card.unsent).status_code == 303
    assert balance() == 0


def test_page_of_a_card_shows_what_was_paid_with_it(run, client):
    order = paid_in_part(run, client)
    owner = browser(person("boss", is_staff=True, is_superuser=True))
    shown = owner.get(f"/admin/orders/giftcard/{GiftCard.objects.get().pk}/change/")
    assert f"/admin/orders/order/{order}/change/" in shown.text
    price = page(owner.get(f"/admin/orders/order/{order}/change/")).text
    assert "Paid by gift card" in price
