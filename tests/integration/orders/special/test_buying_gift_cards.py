"""Gift cards that are bought: one code for each unit, sent once, and void with its order."""

from uuid import uuid4

import pytest
from django.db import ProgrammingError, connection, transaction

from orchestration.api import StepState, request_undo
from orchestration.models import Step, Task
from orchestration.testing.outcomes import rejected
from orchestration.transitions.undo import undo
from orders.gift_codes import digest
from orders.lifecycle import changes, gift_cards, gift_issue, refunds, special
from orders.lifecycle.gift_issue import GIFT_WORKFLOW
from orders.lifecycle.message import WORKFLOW
from orders.lifecycle.queries import progress
from orders.models import GiftCard, Order, ShippingPrice
from tests.support.gifts import gift_card_product, issued, order_of, sums
from tests.support.operators import browser, person
from tests.support.page import elements, page
from tests.support.shop import NOT_NEEDED, fill_cart, order_page, products, verdict
from tests.support.shop_role import in_role, make_role

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _shelf():
    products()
    gift_card_product()
    ShippingPrice.objects.create(price=490)


@pytest.fixture
def order(run, client):
    """A completed order of two gift cards."""
    order = order_of(client, {"gift": 2})
    run.go()
    return order


def codes(run):
    """Return the codes in the letter that the mail service got."""
    call = next(call for call in run.calls("notification.send") if "codes" in call.payload)
    return [line.split()[0] for line in call.payload["codes"].splitlines()]


def undo_all_the_same(run, order):
    """Undo a completed order as an operator does who knows that a letter is sent."""
    task = Task.objects.get(workflow=WORKFLOW, reference=str(order))
    assert undo(task.id, actor="olga", reason="a stolen card", force=True) is None
    run.finish()
    assert Order.objects.get(id=order).status == "undone"


def test_each_unit_has_a_code_that_is_sent_and_then_forgotten(run, client, order):
    cards = list(GiftCard.objects.order_by("unit"))
    assert [(card.order, card.sku, card.unit, card.amount, card.balance) for card in cards] == [
        (order, "gift", 1, 2500, 2500),
        (order, "gift", 2, 2500, 2500),
    ]
    sent = codes(run)
    assert {digest(code) for code in sent} == {card.digest for card in cards}
    assert {code[-4:] for code in sent} == {card.last4 for card in cards}
    assert {card.unsent for card in cards} == {""}
    assert gift_cards.find(sent[0].lower().replace("-", " ")) == 2500


def test_code_is_in_no_task(run, order):
    sent = codes(run)
    stored = str(list(Task.objects.values())) + str(list(Step.objects.values()))
    assert not [code for code in sent if code in stored]
    assert Task.objects.filter(workflow=GIFT_WORKFLOW, state="processed").count() == 1


def test_order_of_gift_cards_alone_has_no_parcel_no_shipping_and_no_tax(run, client, order):
    assert run.calls("inventory.reserve") == run.calls("shipping.book") == []
    assert run.calls("payment.capture")[0].payload["amount"] == 5000
    seen = order_page(client, order)
    assert verdict(seen) == special.BY_EMAIL
    assert "Rue de Lyon" not in seen
    row = Order.objects.get(id=order)
    assert (row.total, row.handling["gifts"], row.handling["ships"]) == (5000, 5000, False)


def test_mixed_order_is_shipped_and_reserves_the_goods_only(run, client):
    order_of(client, {"gift": 1, "sku_0": 2})
    run.go()
    assert run.calls("inventory.reserve")[0].payload["lines"] == [{"sku": "sku-0", "quantity": 2}]
    assert len(run.calls("shipping.book")) == 1
    assert run.calls("payment.capture")[0].payload["amount"] == 2500 + 2000 + 490
    assert GiftCard.objects.count() == 1


def test_cards_are_issued_once_however_often_the_order_is_reported(run, order):
    for _ in range(2):
        gift_issue.settle({order: True})
    run.go()
    assert GiftCard.objects.count() == 2
    assert Task.objects.filter(workflow=GIFT_WORKFLOW).count() == 1


def test_nothing_is_issued_before_the_payment(run, client):
    run.script("payment.capture", rejected("authorization_expired"))
    order = order_of(client, {"gift": 1})
    run.go()
    assert not GiftCard.objects.exists()
    assert changes.cancel(order) is None
    run.finish()
    assert not GiftCard.objects.exists()
    assert Order.objects.get(id=order).status == "undone"


def test_undone_order_voids_what_is_not_spent(run, client, order):
    code = codes(run)[0]
    order_of(client, {"sku_0": 1}, gift_card=code)  # 10.00 and 4.90
    undo_all_the_same(run, order)
    gift_issue.settle({order: False})  # once, however often
    spent, other = sorted(GiftCard.objects.all(), key=lambda card: card.withdrawn)
    assert (spent.balance, spent.withdrawn, spent.void) == (0, 1010, True)
    assert (other.balance, other.withdrawn, other.void) == (0, 2500, True)
    with pytest.raises(gift_cards.NotValid):
        gift_cards.find(code)


def test_void_card_keeps_nothing_of_what_is_given_back(run, client, order):
    run.script("shipping.book", rejected("address_unknown"))
    spending = order_of(client, {"sku_0": 1}, gift_card=codes(run)[0])
    run.go()
    undo_all_the_same(run, order)
    assert changes.cancel(spending) is None
    run.finish()
    assert set(GiftCard.objects.values_list("balance", "withdrawn")) == {(0, 2500)}


def test_refund_withdraws_from_the_cards_and_not_what_is_spent(run, client, order):
    order_of(client, {"sku_0": 1}, gift_card=codes(run)[0])
    with pytest.raises(refunds.TooMuch) as refusal:
        refunds.refund(order, 3511, "No.", id_=uuid4(), by=None)
    assert refusal.value.left == 3510  # 14.90 are spent
    refunds.refund(order, 3000, "They have one.", id_=uuid4(), by=None)
    assert sum(GiftCard.objects.values_list("balance", flat=True)) == 510
    run.go()
    assert sum(GiftCard.objects.values_list("withdrawn", flat=True)) == 3000
    assert run.calls("payment.refund")[0].payload["amount"] == 3000


def test_refund_that_is_undone_leaves_the_cards_as_they_were(run, order):
    run.script("payment.refund", rejected("refund_failed"))
    refund = refunds.refund(order, 5000, "No.", id_=uuid4(), by=None)
    run.finish()
    assert set(GiftCard.objects.values_list("balance", flat=True)) == {0}
    request_undo("refund_order", str(refund.id), actor="ann", reason="no account", id=uuid4())
    run.go()
    assert set(GiftCard.objects.values_list("balance", "withdrawn")) == {(2500, 0)}


def test_refund_of_other_goods_leaves_the_cards(run, client):
    order = order_of(client, {"gift": 1, "sku_0": 2})
    run.go()
    refunds.refund(order, 2490, "A chip.", id_=uuid4(), by=None)
    assert GiftCard.objects.get().balance == 2500


@pytest.mark.parametrize("field", ["gift_card", "discount_code"])
def test_codes_are_not_for_gift_cards(client, field):
    fill_cart(client, gift=1)
    card = issued(9000)
    part = sums(client, **{field: card.unsent})
    name = {"gift_card": "#card-wrong", "discount_code": "#code-wrong"}[field]
    assert elements(part.text).only(name).text
    assert 'data-sum="gift_card"' not in part.text


def test_staff_issue_a_card_by_hand_once(run):
    owner = browser(person("boss", is_staff=True, is_superuser=True))
    form = page(owner.get("/admin/orders/giftcard/issue/")).only("form#issue")
    sent = {
        "id_": form.only('input[name="id_"]')["value"], "amount": "12.50", "name": "Bea",
        "email": "bea@example.org", "language": "de", "reason": "A parcel came late.",
    }  # fmt: skip
    for _ in range(2):
        assert owner.post("/admin/orders/giftcard/issue/", sent).status_code == 302
    run.go()
    card = GiftCard.objects.get()
    assert (card.balance, card.reason, card.unsent) == (1250, "A parcel came late.", "")
    (call,) = run.calls("notification.send")
    assert call.payload["to"] == "bea@example.org"
    assert digest(call.payload["codes"].split()[0]) == card.digest
    shown = owner.get(f"/admin/orders/giftcard/{card.pk}/change/").text
    assert card.last4 in shown
    assert card.digest not in shown
    listed = owner.get("/admin/orders/giftcard/").text
    assert "€12.50" in listed


@pytest.mark.parametrize("wrong", [{"amount": "0"}, {"email": "x"}, {"reason": " "}, {"id_": "x"}])
def test_wrong_card_is_refused_and_changes_nothing(wrong):
    owner = browser(person("boss", is_staff=True, is_superuser=True))
    sent = {"id_": str(uuid4()), "amount": "1", "name": "Bea", "email": "bea@example.org",
            "language": "de", "reason": "Late.", **wrong}  # fmt: skip
    assert owner.post("/admin/orders/giftcard/issue/", sent).status_code == 422
    assert not GiftCard.objects.exists()


def test_card_needs_its_permission():
    viewer = browser(person("viewer", "view_giftcard", is_staff=True))
    assert viewer.get("/admin/orders/giftcard/issue/").status_code == 403
    assert "giftcard/issue" not in viewer.get("/admin/orders/giftcard/").text


def test_web_process_of_the_shop_neither_issues_cards_nor_reads_codes():
    issued()
    make_role()
    for forbidden in (
        "SELECT unsent FROM orders_giftcard",
        "UPDATE orders_giftcard SET amount = 1",
        "DELETE FROM orders_giftcard",
        "INSERT INTO orders_giftcard SELECT * FROM orders_giftcard",
        "UPDATE orders_giftuse SET returned = 0",
    ):
        with in_role(), pytest.raises(ProgrammingError), transaction.atomic():
            connection.cursor().execute(forbidden)


def test_steps_of_ordinary_goods_are_as_before(run, client):
    order = order_of(client)
    run.go()
    row = Order.objects.get(id=order)
    assert row.handling is None
    assert "handling" not in run.task(WORKFLOW, str(order)).progress.data
    skipped = [step.name for step in progress(order).steps if step.state is StepState.SKIPPED]
    assert {*skipped} == NOT_NEEDED
