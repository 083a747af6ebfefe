"""Units that are removed from an order: until the parcel is booked, and what follows for goods and money."""

import json
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from orchestration.api import Status, StatusKind, TaskHandle
from orchestration.models import Alert, Step, TaskRequest
from orchestration.testing.outcomes import done, later, transient
from orders.lifecycle import changes, overpaid, refunds, removing, returns
from orders.lifecycle.fewer import NothingLeft, NotRemovable
from orders.lifecycle.queries import progress
from orders.lifecycle.requests import REMOVAL_TOO_LATE
from orders.models import GiftCard, Order, Product, Refund, Removal
from tests.support.gifts import issued, order_of
from tests.support.page import elements
from tests.support.shop import (
    carry_out,
    order_page,
    posted,
    products,
    verdict,
)
from tests.support.shop_role import Visitor, make_role

pytestmark = pytest.mark.django_db
ASKED = later({"id": "pi_1", "page": "https://bank.test/"}, id="pi_1", look=300)
TRANSFER = {
    "holder": "Kettlewell", "iban": "DE00 1001", "bic": "SANDDEXX", "reference": "REF1", "amount": 3000,
}  # fmt: skip
AWAITED = later({"id": "pi_1", "status": "x", "transfer": TRANSFER}, id="pi_1", look=86_400)
TAKEN = {"id": "pi_1", "status": "succeeded", "taken": True}


@pytest.fixture(autouse=True)
def _shelf():
    products()
    Product.objects.update(price=1000)


def placed(run, client, outcome=ASKED, **fields):
    """Return the id of an order of two units at 10.00 and one at 10.00, whose payment waits."""
    run.script("payment.authorize", outcome)
    order = order_of(client, {"sku_0": 2, "sku_1": 1}, **fields)
    run.go()
    return order


@pytest.fixture
def order(run, client):
    return placed(run, client)


def remove(order, _id=None, **units):
    """Ask for units to be removed."""
    units = {sku.replace("_", "-"): count for sku, count in units.items()}
    return removing.remove(order, units, id_=_id or uuid4())


def pay(run, order, **result):
    run.complete(
        run.task("process_order", str(order)),
        "authorize_payment",
        {"id": "pi_1", "status": "requires_capture", **result},
    )
    run.go()


def stands(order):
    """Return the units by SKU and the total, by the order's rows."""
    row = Order.objects.get(id=order)
    return dict(row.lines.values_list("sku", "quantity")), row.total


def amounts(run, call):
    return [made.payload["amount"] for made in run.calls(call)]


def test_rest_is_sent_and_charged_and_the_units_are_free(run, client, order):
    assert remove(order, sku_0=1) is None
    assert "data-remove" not in order_page(client, order)  # one request at a time
    run.go()
    assert stands(order) == ({"sku-0": 1, "sku-1": 1}, 2000)
    assert Order.objects.get(id=order).asked is None
    (release,) = run.calls("inventory.release_part")
    reserved = progress(order).steps[0].result["id"]
    assert release.payload == {
        "order": str(order), "reservation": reserved, "lines": [{"sku": "sku-0", "quantity": 1}],
    }  # fmt: skip
    pay(run, order)
    (booked,) = run.calls("shipping.book")
    assert booked.payload["only"] == [
        {"sku": "sku-0", "quantity": 1},
        {"sku": "sku-1", "quantity": 1},
    ]
    assert (amounts(run, "payment.authorize"), amounts(run, "payment.capture")) == ([3000], [2000])
    assert Order.objects.get(id=order).status == "confirmed"


def test_customer_reads_what_was_removed_on_the_page_and_in_the_letters(run, client, order):
    remove(order, sku_0=2)
    run.go()
    seen = elements(order_page(client, order))
    assert seen.only("[data-removed]")["data-removed"] == "sku-0"
    assert seen.only('[data-sum="total"]').only("dd").text == "€10.00"
    (letter,) = [call.payload["mail"] for call in run.calls("notification.send")
                 if "removed something" in call.payload["mail"]["subject"]]  # fmt: skip
    assert "2 x Product 0" in letter["text"]
    assert "€10.00" in letter["text"]
    assert "€30.00" in letter["text"]  # what the bank may still name
    pay(run, order)
    confirmation = run.calls("notification.send")[-1].payload["mail"]["text"]
    assert "€10.00" in confirmation
    assert "€30.00" not in confirmation


def test_several_removals_one_after_the_other(run, order):
    for _ in range(2):
        remove(order, sku_0=1)
        run.go()
    assert stands(order) == ({"sku-1": 1}, 1000)
    assert [call.payload["lines"] for call in run.calls("inventory.release_part")] == [
        [{"sku": "sku-0", "quantity": 1}]
    ] * 2
    pay(run, order)
    assert run.calls("shipping.book")[0].payload["only"] == [{"sku": "sku-1", "quantity": 1}]
    assert amounts(run, "payment.capture") == [1000]


def test_removal_that_comes_after_the_booking_changes_nothing(run, client, order):
    run.script("payment.capture", transient("busy"))  # so that it goes on for a while
    stale = Order.objects.get(id=order).snapshot
    pay(run, order)
    # the customer's page shows the order as it was, as messages take their time
    Order.objects.filter(id=order).update(status="received", snapshot=stale)
    before = Order.objects.values().get(id=order)
    assert remove(order, sku_0=1) is None
    run.go()
    after = Order.objects.values().get(id=order)
    assert (after["total"], after["fingerprint"]) == (before["total"], before["fingerprint"])
    assert after["asked"]["refused"] == "TAKEN"
    assert not Removal.objects.exists()
    assert not run.calls("inventory.release_part")
    run.script("payment.capture", done(id="ch", status="succeeded"))
    run.finish()
    assert run.calls("shipping.book")[0].payload["only"] is None
    assert amounts(run, "payment.capture")[-1] == 3000
    assert elements(order_page(client, order)).only("#too-late").text == REMOVAL_TOO_LATE


def test_booking_that_was_sent_keeps_its_goods(run, order):
    run.script("shipping.book", transient("busy"))
    stale = Order.objects.get(id=order).snapshot
    pay(run, order)
    task = run.task("process_order", str(order))
    assert (task.steps["create_shipment"], task.steps["capture_payment"]) == ("pending", "waiting")
    Order.objects.filter(id=order).update(status="received", snapshot=stale)
    remove(order, sku_0=1)
    run.go()
    assert Order.objects.get(id=order).asked["refused"] == "TAKEN"
    run.script("shipping.book", done(id="shp", tracking="T"))
    run.finish()
    assert stands(order) == ({"sku-0": 2, "sku-1": 1}, 3000)
    assert not run.calls("inventory.release_part")
    assert amounts(run, "payment.capture") == [3000]


def test_same_id_removes_once_and_other_units_under_it_are_refused(run, order):
    same = uuid4()
    for _ in range(2):
        assert remove(order, same, sku_0=1) is None
    with pytest.raises(removing.OtherRemoval):
        remove(order, same, sku_1=1)
    run.go()
    assert remove(order, same, sku_0=1) is None
    with pytest.raises(removing.OtherRemoval):
        remove(order, same, sku_0=2)
    run.go()
    assert stands(order) == ({"sku-0": 1, "sku-1": 1}, 2000)
    assert Removal.objects.count() == len(run.calls("inventory.release_part")) == 1


@pytest.mark.parametrize(
    ("units", "refusal"),
    [
        ({}, NotRemovable),
        ({"sku_0": 3}, NotRemovable),
        ({"sku_0": 0}, NotRemovable),
        ({"sku_0": -1}, NotRemovable),
        ({"sku_2": 1}, NotRemovable),
        ({"sku_0": 2, "sku_1": 1}, NothingLeft),
    ],
)
def test_what_cannot_be_removed_changes_nothing(order, units, refusal):
    with pytest.raises(refusal):
        remove(order, **units)
    assert Order.objects.get(id=order).asked is None


def test_request_that_leaves_another_amount_is_set_aside(run, order):
    """The web process serves the public: what its request says is not believed."""
    remove(order, sku_0=1)
    request = TaskRequest.objects.get(what="amend")
    request.amendment["data"]["left"]["total"] = 1
    request.save(update_fields=["amendment"])
    run.go()
    assert stands(order) == ({"sku-0": 2, "sku-1": 1}, 3000)
    assert Alert.objects.exists()


def test_request_before_the_goods_are_reserved_is_not_offered(run, client):
    run.script("inventory.reserve", transient("busy"))
    order = placed(run, client)
    assert "data-remove" not in order_page(client, order)
    assert remove(order, sku_0=1) is not None


def test_page_learns_within_seconds_that_the_goods_are_reserved(run, client, order):
    """The message that the payment waits may have been written while they were being reserved."""
    row = Order.objects.get(id=order)
    row.snapshot["steps"][0]["state"] = "processing"
    row.save(update_fields=["snapshot"])
    assert "data-remove" not in order_page(client, order)
    run.wait(10)
    assert "data-remove" in order_page(client, order)
    assert not posted("reminder")


class TestFormerRelease:
    """Tasks of a former release have steps that would send and charge all of the order."""

    @pytest.fixture(params=["create_shipment", "capture_payment"])
    def former(self, request, order):
        step = Step.objects.get(task__reference=str(order), name=request.param)
        step.request = json.loads(json.dumps(step.request).replace('"left"', '"unknown"'))
        step.save(update_fields=["request"])
        return order

    def test_request_about_it_is_set_aside(self, run, former):
        remove(former, sku_0=1)
        run.go()
        assert stands(former) == ({"sku-0": 2, "sku-1": 1}, 3000)
        assert Alert.objects.exists()


class TestMoney:
    """What is taken is what is left; what was taken before goes back."""

    def test_transfer_that_has_not_arrived_is_of_the_first_amount(self, run, client):
        order = placed(run, client, AWAITED, payment_method="customer_balance")
        remove(order, sku_0=1)
        run.go()
        seen = elements(order_page(client, order))
        assert "€30.00" in seen.only("#pay").text
        (how_to_pay,) = posted("transfer")  # the letter is as it was
        assert "€30.00" in how_to_pay["text"]
        assert not Alert.objects.exists()
        assert "€30.00" in seen.only("[data-too-much]").text
        pay(run, order, **TAKEN)
        assert stands(order) == ({"sku-0": 1, "sku-1": 1}, 2000)
        assert Order.objects.get(id=order).status == "confirmed"
        assert [(call.payload["payment"], call.payload["amount"])
                for call in run.calls("payment.refund")] == [("pi_1", 1000)]  # fmt: skip
        assert "€10.00" in elements(order_page(client, order)).only("#refunded").text
        row = Order.objects.get(id=order)
        assert (row.refunded, refunds.left_of(row)) == (0, 2000)
        # no more than was taken, over all of it
        with pytest.raises(refunds.TooMuch):
            refunds.refund(order, 2001, "x", id_=uuid4(), by=None)
        refunds.refund(order, 2000, "x", id_=uuid4(), by=None)
        run.go()
        assert sum(amounts(run, "payment.refund")) == 3000
        assert Order.objects.get(id=order).refunded == 2000

    def test_message_that_comes_twice_pays_back_once(self, run, client):
        order = placed(run, client, AWAITED, payment_method="customer_balance")
        remove(order, sku_0=1)
        run.go()
        pay(run, order, **TAKEN)
        again = Status(workflow="process_order", reference=str(order), kind=StatusKind.COMPLETED,
                       number=99, progress=progress(order), at=timezone.now(), detail={})  # fmt: skip
        overpaid.receive([again])
        run.go()
        assert amounts(run, "payment.refund") == [1000]
        assert Refund.objects.filter(overpaid=True).count() == 1

    def test_transfer_of_an_order_that_is_cancelled_goes_back_once(self, run, client):
        order = placed(run, client, AWAITED, payment_method="customer_balance")
        remove(order, sku_0=1)
        run.go()
        run.script("shipping.book", transient("busy"))
        pay(run, order, **TAKEN)
        changes.cancel(order)
        run.finish()
        assert Order.objects.get(id=order).status == "undone"
        assert len(run.calls("payment.void")) == 1
        assert not Refund.objects.exists()

    def test_gift_card_gets_its_part_back_at_once(self, run, client):
        order = placed(run, client, gift_card=issued(2500).unsent)
        assert GiftCard.objects.get().balance == 0
        remove(order, sku_0=2)
        run.go()
        row = Order.objects.get(id=order)
        assert (row.total, row.to_pay, GiftCard.objects.get().balance) == (1000, 500, 2000)
        pay(run, order)
        assert amounts(run, "payment.capture") == [500]

    def test_order_that_is_cancelled_afterwards_returns_the_rest(self, run, client):
        order = placed(run, client, gift_card=issued(2500).unsent)
        remove(order, sku_0=1)
        run.go()
        changes.cancel(order)
        run.finish()
        assert Order.objects.get(id=order).status == "undone"
        assert GiftCard.objects.get().balance == 2500
        assert len(run.calls("inventory.release")) == 1

    def test_another_card_pays_what_is_left(self, run, order):
        remove(order, sku_0=1)
        run.go()
        run.complete(run.task("process_order", str(order)), "authorize_payment",
                     refused="card_declined")  # fmt: skip
        run.go()
        attempt = Order.objects.get(id=order).snapshot["steps"][1]["attempt"]
        assert changes.other_card(order, attempt, "pm_card_mastercard") is None
        run.script("payment.authorize", done(id="pi_2", status="requires_capture"))
        run.go()
        assert amounts(run, "payment.authorize") == [3000, 2000]
        assert amounts(run, "payment.capture") == [2000]
        assert not TaskRequest.objects.filter(problem="refused").exists()


def test_no_more_comes_back_than_is_left(run, order):
    remove(order, sku_0=1)
    run.go()
    pay(run, order)
    with pytest.raises(returns.TooMany):
        returns.ask(order, {"sku-0": 2}, "other", id_=uuid4())
    row = returns.ask(order, {"sku-0": 1, "sku-1": 1}, "other", id_=uuid4())
    assert row.amount == 2000


class TestWarehouses:
    """Goods in several warehouses: each parcel leaves out what was removed from it."""

    LINES = [
        {"sku": "sku-0", "quantity": 1, "warehouse": "main"},
        {"sku": "sku-0", "quantity": 1, "warehouse": "south"},
        {"sku": "sku-1", "quantity": 1, "warehouse": "south"},
    ]

    @pytest.fixture
    def order(self, run, client):
        run.script("inventory.reserve", done(id="rsv", lines=self.LINES))
        return placed(run, client)

    def sent(self, run):
        return [
            (call.payload["warehouse"], call.payload["only"]) for call in run.calls("shipping.book")
        ]

    def test_parcel_and_release_name_the_same_warehouse(self, run, order):
        remove(order, sku_0=1)
        run.go()
        (release,) = run.calls("inventory.release_part")
        assert release.payload["lines"] == [self.LINES[1]]
        pay(run, order)
        assert self.sent(run) == [
            ("main", [{"sku": "sku-0", "quantity": 1}]),
            ("south", [{"sku": "sku-1", "quantity": 1}]),
        ]

    def test_warehouse_without_anything_left_sends_no_parcel(self, run, order):
        remove(order, sku_0=1)
        run.go()
        remove(order, sku_1=1)
        run.go()
        pay(run, order)
        assert self.sent(run) == [("main", [{"sku": "sku-0", "quantity": 1}])]
        assert amounts(run, "payment.capture") == [1000]

    def test_parcels_of_an_order_without_removals_name_nothing_more(self, run, order):
        pay(run, order)
        assert [only for _, only in self.sent(run)] == [None, None]


def test_what_is_made_for_the_customer_stays(run, client):
    Product.objects.filter(sku="sku-1").update(made_within_days=3)
    order = placed(run, client)
    seen = elements(order_page(client, order))
    assert [form["data-remove"] for form in seen.all("[data-remove]")] == ["sku-0"]
    with pytest.raises(NotRemovable):
        remove(order, sku_1=1)


def test_customer_removes_on_the_page(run, client, order):
    seen = elements(order_page(client, order))
    form = seen.all("[data-remove]")[0].only("form")
    assert len(form.only("select").all("option")) == 2
    fields = {field["name"]: field["value"] for field in form.all('input[type="hidden"]')}
    answer = client.post(form["action"], {**fields, "units": "1"})
    assert answer.status_code == 303
    assert verdict(order_page(client, order)).startswith("We have passed on")
    run.go()
    assert stands(order) == ({"sku-0": 1, "sku-1": 1}, 2000)


def test_web_process_of_the_shop_alone_may_ask_for_it():
    make_role()
    visitor = Visitor()
    order = order_of(visitor, {"sku_0": 2, "sku_1": 1})
    carry_out()
    row = Order.objects.get(id=order)
    row.snapshot["steps"][0]["state"] = "processed"
    row.save(update_fields=["snapshot"])
    sent = {"id_": str(uuid4()), "sku": "sku-0", "units": "1"}
    assert visitor.post(f"/orders/{order}/remove/", sent).status_code == 303
    assert TaskRequest.objects.get(what="amend").note["units"] == {"sku-0": 1}
    gone = [{"sku": "sku-0", "name": "Product 0", "quantity": 1}]
    Removal.objects.create(id=uuid4(), order=row, lines=gone, released=[], amount=0)
    assert "data-removed" in order_page(visitor, order)


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"units": "0"}, 422), ({"units": "x"}, 422), ({"id_": "x"}, 422), ({"sku": ""}, 422),
        ({"sku": "x" * 300}, 422), ({"units": "3"}, 409), ({"sku": "sku-9"}, 409),
    ],
)  # fmt: skip
def test_wrong_form_is_refused_with_a_sentence(client, order, wrong, status):
    sent = {"id_": str(uuid4()), "sku": "sku-0", "units": "1", **wrong}
    answer = client.post(f"/orders/{order}/remove/", sent)
    assert answer.status_code == status
    assert elements(answer.text).all('p[role="alert"]')
    assert Order.objects.get(id=order).asked is None


def test_stranger_removes_nothing(order):
    sent = {"id_": str(uuid4()), "sku": "sku-0", "units": "1"}
    assert Client().post(f"/orders/{order}/remove/", sent).status_code == 404


def test_completed_order_offers_a_return_instead(run, client, order):
    pay(run, order)
    seen = order_page(client, order)
    assert "data-remove" not in seen
    assert 'id="return"' in seen
    sent = {"id_": str(uuid4()), "sku": "sku-0", "units": "1"}
    assert client.post(f"/orders/{order}/remove/", sent).status_code == 409


def test_engine_refuses_a_removal_that_no_row_asked_for(run, order):
    TaskHandle("process_order", str(order)).amend(
        data={"left": {"total": 1}}, actor="x", reason="x", id=uuid4(),
        note={"act": "remove", "units": {"sku-0": 1}},
    )  # fmt: skip
    run.go()
    assert stands(order)[1] == 3000
    assert Alert.objects.exists()
