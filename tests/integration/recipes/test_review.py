"""A review by a person: who decides first counts, and time decides otherwise."""

from uuid import uuid4

import pytest

from orchestration.api import request_undo
from orchestration.models import Alert, Incident, TaskRequest, Wait

HOUR = 3600.0
DATA = {"order": "o-1", "cents": 90_000, "to": "Bath"}


@pytest.fixture
def order(shop):
    order = shop.submit("reviewed", {**DATA, "risky": True}, reply_to="recipes")
    shop.go()
    return order


def refusals():
    return [*TaskRequest.objects.order_by("id").values_list("refusal", flat=True)]


@pytest.fixture
def kinds(page):
    """Return the kinds of the status messages that the application got."""
    return lambda: [message.kind for message in page["received"]]


def test_order_without_risk_has_no_review(shop):
    plain = shop.submit("reviewed", {**DATA, "risky": False})
    shop.go()
    assert plain.steps == {"pay": "processed", "review": "skipped", "ship": "processed"}
    assert not Wait.objects.exists()


def test_review_waits_for_its_role_without_an_alert(shop, order):
    shop.wait(2 * HOUR)
    assert order.steps == {"pay": "processed", "review": "awaiting", "ship": "waiting"}
    assert order.step("review").request == {"order": "o-1", "cents": 90_000}
    assert Wait.objects.get().person == "fraud"
    assert not Alert.objects.exists()
    assert not Incident.objects.exists()


def test_good_order_is_shipped(shop, order):
    shop.complete(order, "review", {"ok": True})
    shop.go()
    assert (order.state, order.result("review")) == ("processed", {"ok": True})


def test_fraud_undoes_the_order(shop, order):
    shop.complete(order, "review", refused="fraud", actor="ann")
    shop.go()
    assert (order.state, order.undone) == ("undone", ["pay"])
    assert shop.calls("carrier.book") == []


def test_default_is_to_go_on_and_the_application_is_reminded_before(shop, order, kinds):
    shop.wait(3 * HOUR)
    assert kinds() == ["received", "reminder"]
    shop.wait(HOUR)
    assert order.state == "processed"
    assert order.steps["review"] == "skipped"
    assert order.step("review").error_code == "late"
    assert not Alert.objects.exists()


@pytest.mark.parametrize("before", [1, 0, -1])
def test_person_who_decides_as_the_time_ends_is_heard_or_refused(shop, order, before):
    shop.wait(4 * HOUR - before)
    shop.complete(order, "review", refused="fraud", actor="ann")
    shop.go()
    shop.wait(1)
    if before > 0:
        assert (order.state, refusals()) == ("undone", [""])
    else:
        assert (order.state, refusals()) == ("processed", ["REPORTED"])
    assert len(shop.calls("carrier.book")) == (before <= 0)


def test_decision_that_was_posted_before_the_end_counts_though_it_is_read_after(shop, order):
    """Time that ends, and a request that is there: the request is taken first."""
    shop.complete(order, "review", refused="fraud", actor="ann")
    shop.clock.move(4 * HOUR)
    shop.go()
    assert (order.state, refusals()) == ("undone", [""])


def test_two_people_decide_once(shop, order):
    shop.complete(order, "review", {"ok": True}, actor="ann")
    shop.complete(order, "review", refused="fraud", actor="bob")
    shop.complete(order, "review", {"ok": True}, actor="cid")
    shop.go()
    assert order.state == "processed"
    assert refusals() == ["", "REPORTED", ""]  # the third says what the first does


def test_verdict_of_another_shape_ends_nothing(shop, order):
    shop.complete(order, "review", {"fine": "yes"})
    shop.go()
    assert order.steps["review"] == "awaiting"
    assert refusals() == ["INVALID"]


def test_verdict_before_the_payment_is_done_is_kept(shop):
    order = shop.submit("reviewed", {**DATA, "risky": True})
    shop.complete(order, "review", {"ok": True})
    shop.go()
    assert order.state == "processed"


def test_order_that_is_undone_leaves_no_decision_behind(shop, order):
    request_undo("reviewed", order.reference, actor="ann", reason="no", id=uuid4())
    shop.go()
    assert (order.state, order.undone) == ("undone", ["pay"])
    assert not Wait.objects.exists()
    shop.complete(order, "review", {"ok": True})
    shop.go()
    assert refusals()[-1] == "REPORTED"
