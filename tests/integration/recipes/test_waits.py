"""Orders that wait: for a date, for money, for goods."""

from datetime import timedelta
from uuid import uuid4

import pytest

from orchestration.api import Refused, request_undo
from orchestration.models import Alert, TaskRequest

DAY = 86_400.0
DATA = {"order": "o-1", "cents": 900, "to": "Bath"}


def refusals():
    return [*TaskRequest.objects.order_by("id").values_list("refusal", flat=True)]


@pytest.fixture
def released(shop):
    """When the game is released."""
    return shop.clock.now + timedelta(days=30)


@pytest.fixture
def preorder(shop, released):
    return shop.submit("preordered", {**DATA, "release_date": released.isoformat()})


def test_preorder_begins_on_its_day(shop, preorder):
    shop.wait(30 * DAY - 1)
    assert preorder.steps == {"pay": "pending", "ship": "waiting"}
    assert (preorder.calls(), preorder.progress.overdue, Alert.objects.count()) == ([], False, 0)
    shop.wait(1)
    assert preorder.state == "processed"


def test_order_without_a_date_begins_at_once(shop):
    order = shop.submit("preordered", {**DATA, "release_date": None})
    shop.go()
    assert order.state == "processed"


def test_preorder_that_is_undone_before_its_day_charges_nothing(shop, preorder):
    shop.wait(DAY)
    request_undo("preordered", preorder.reference, actor="ann", reason="no", id=uuid4())
    shop.go()
    assert preorder.state == "undone"
    shop.wait(40 * DAY)
    assert preorder.calls() == []


def test_date_that_is_none_is_refused(shop):
    with pytest.raises(Refused):
        shop.submit("preordered", {**DATA, "release_date": "soon"})


def test_parcel_leaves_on_its_day_and_the_money_is_taken_before(shop, released):
    order = shop.submit("released", {**DATA, "release_date": released.isoformat()})
    shop.wait(30 * DAY - 1)
    assert order.steps == {"pay": "processed", "ship": "waiting"}
    assert (order.progress.overdue, Alert.objects.count()) == (False, 0)
    shop.wait(1)
    assert order.state == "processed"


def test_order_that_is_undone_before_its_day_ships_nothing(shop, released):
    order = shop.submit("released", {**DATA, "release_date": released.isoformat()})
    shop.wait(DAY)
    request_undo("released", order.reference, actor="ann", reason="no", id=uuid4())
    shop.wait(40 * DAY)
    assert (order.state, order.undone) == ("undone", ["pay"])
    assert shop.calls("carrier.book") == []


@pytest.mark.parametrize("days", [None, -1])
def test_date_that_has_passed_is_at_once(shop, days):
    date = days and (shop.clock.now + timedelta(days=days)).isoformat()
    order = shop.submit("released", {**DATA, "release_date": date})
    shop.go()
    assert order.state == "processed"


@pytest.fixture
def transfer(shop):
    order = shop.submit("transfer", DATA)
    shop.go()
    return order


def test_customer_is_reminded_once_and_the_order_is_undone_after_a_week(shop, transfer):
    shop.wait(3 * DAY - 1)
    assert shop.calls("mail_service.send") == []
    shop.wait(1)
    assert len(shop.calls("mail_service.send")) == 1
    shop.wait(4 * DAY)
    assert transfer.state == "undone"
    assert len(shop.calls("mail_service.send")) == 1
    assert shop.calls("carrier.book") == []


@pytest.mark.parametrize("before", [DAY, 0.001, 0])
def test_customer_who_has_paid_by_then_is_not_reminded(shop, transfer, before):
    shop.wait(3 * DAY - before - (0 if before else 1))
    shop.complete(transfer, "paid", {"id": "pay_1"})
    shop.clock.move(0 if before else 1)  # the report is there as the time comes
    shop.go()
    shop.wait(DAY)
    assert (transfer.state, transfer.steps["remind"]) == ("processed", "skipped")
    assert shop.calls("mail_service.send") == []


def test_customer_who_pays_after_the_reminder_gets_the_parcel(shop, transfer):
    shop.wait(4 * DAY)
    shop.complete(transfer, "paid", {"id": "pay_1"})
    shop.go()
    assert (transfer.state, transfer.steps["remind"]) == ("processed", "processed")


@pytest.fixture
def reserved(shop):
    order = shop.submit("reserved", DATA)
    shop.go()
    return order


def test_order_that_is_not_paid_in_time_is_cancelled(shop, reserved):
    shop.wait(1799)
    assert reserved.steps["paid"] == "awaiting"
    shop.wait(1)
    assert (reserved.state, reserved.undone) == ("undone", ["reserve"])
    assert [call.step for call in shop.calls("carrier.book")] == ["reserve"]


@pytest.mark.parametrize("early", [True, False])
def test_order_that_is_paid_is_shipped_once(shop, early):
    order = shop.submit("reserved", DATA)
    if not early:
        shop.wait(1799)
    for _ in range(2):
        shop.complete(order, "paid", {"id": "pay_1"})
    shop.go()
    assert order.state == "processed"
    assert [call.step for call in shop.calls("carrier.book")] == ["reserve", "ship"]
    shop.wait(3_600)
    assert order.state == "processed"


def test_money_that_comes_too_late_is_reported_back(shop, reserved, page):
    shop.wait(1800)
    page["complete"](
        "reserved", reserved.reference, "paid",
        result={"id": "pay_1"}, actor="bank", id=uuid4(), reply_to="recipes",
    )  # fmt: skip
    shop.go()
    assert (reserved.state, refusals()) == ("undone", ["REPORTED"])
    (message,) = page["received"]
    assert (message.kind, message.detail["refusal"]) == ("refused", "REPORTED")


@pytest.fixture
def awaited(shop):
    return shop.submit("awaited", DATA, reference="o-1")


@pytest.mark.parametrize("early", [True, False])
def test_goods_are_kept_for_an_order_that_does_not_wait_yet(shop, awaited, page, early):
    if not early:
        shop.wait(DAY)
    scan = uuid4()
    for _ in range(3):
        page["goods_arrived"]("o-1", 2, scan)
    page["goods_arrived"]("o-1", 3, uuid4())  # in contradiction
    shop.go()
    assert (awaited.state, awaited.result("goods")) == ("processed", {"boxes": 2})
    assert len(TaskRequest.objects.all()) == 2
    assert refusals() == ["", "REPORTED"]


def test_goods_that_never_come_are_for_an_operator(shop, awaited):
    shop.wait(14 * DAY - 1)
    assert Alert.objects.count() == 0
    shop.wait(1)
    assert (awaited.state, awaited.step("goods").error_code) == ("error", "late")


def test_question_says_how_far_an_order_is(shop, awaited, page):
    shop.go()
    assert page["how_far"]("awaited", "o-1") == {"goods": "awaiting", "ship": "waiting"}
    page["goods_arrived"]("o-1", 2, uuid4())
    shop.go()
    assert page["how_far"]("awaited", "o-1") == {"goods": "processed", "ship": "processed"}
