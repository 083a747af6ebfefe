"""Payments that end later: reports come early, twice, late, not at all, or in contradiction."""

import hmac
import json
from uuid import uuid4

import pytest
from django.core.exceptions import PermissionDenied

from orchestration.api import request_undo
from orchestration.models import Alert, Attempt, Incident, TaskRequest
from orchestration.testing import outcomes
from tests.integration.recipes.conftest import SECRET

HALF_HOUR = 1800.0
DATA = {"order": "o-1", "cents": 900, "to": "Bath"}


@pytest.fixture
def order(real_bank, shop):
    return shop.submit("confirmed", DATA, reference="o-1")


@pytest.fixture
def report(page, rf):
    """Have the bank report to the page's view; return the answer's status."""

    def post(charge="ch_0", code="", event="", secret=SECRET):
        event = {
            "id": event or uuid4().hex, "order": "o-1", "paid": not code, "code": code,
            "charge": {"id": charge, "status": "paid"},
        }  # fmt: skip
        body = json.dumps(event).encode()
        signature = hmac.new(secret, body, "sha256").hexdigest()
        request = rf.post("/", body, "application/json", headers={"Signature": signature})
        return page["bank_reports"](request).status_code

    return post


def refusals():
    return [*TaskRequest.objects.order_by("id").values_list("refusal", flat=True)]


def test_report_ends_the_payment_and_there_is_neither_alert_nor_incident(shop, order, report):
    shop.wait(600)
    assert order.steps == {"pay": "awaiting", "ship": "waiting"}
    assert order.result("pay") == {"id": "ch_0", "status": "pending"}
    assert (Alert.objects.count(), Incident.objects.count(), Attempt.objects.count()) == (0, 0, 1)
    assert report() == 202
    shop.go()
    assert (order.state, order.result("pay")["status"]) == ("processed", "paid")


def test_report_that_overtakes_the_banks_answer_is_kept(shop, order, report):
    report()
    shop.go()
    assert (order.state, order.result("pay")) == ("processed", {"id": "ch_0", "status": "paid"})


def test_doubled_report_counts_once(shop, order, report):
    shop.go()
    for _ in range(3):
        assert report(event="evt_1") == 202
    shop.go()
    assert report(event="evt_1") == 202
    shop.go()
    assert order.state == "processed"
    assert refusals() == [""]
    assert len(shop.calls("carrier.book")) == 1


def test_of_contradicting_reports_the_first_counts(shop, order, report):
    shop.go()
    report()
    report(code="declined")
    shop.go()
    assert order.state == "processed"
    assert refusals() == ["", "REPORTED"]


def test_declined_payment_undoes_the_order_and_a_later_success_does_not_ship_it(
    shop, order, report
):
    shop.go()
    report(code="declined")
    shop.go()
    assert order.state == "undone"
    report()
    shop.go()
    assert (order.state, refusals()) == ("undone", ["", "REPORTED"])
    assert shop.calls("carrier.book") == []


def test_declined_payment_whose_first_answer_was_lost_is_settled(shop):
    shop.policy("confirmed_bank", tries=1)
    accepted = outcomes.later({"id": "ch_0"}, id="ch_0")
    shop.script("confirmed_bank.charge", outcomes.in_doubt(), accepted)
    order = shop.submit("confirmed", DATA, reference="o-1")
    shop.complete(order, "pay", refused="declined")
    shop.wait(60)
    assert (order.state, order.undone) == ("undone", [])
    assert order.steps["pay"] == "cancelled"


def test_lost_report_is_asked_for_as_the_time_ends(shop, order, real_bank):
    shop.wait(HALF_HOUR - 1)
    real_bank.ends = "paid"
    shop.wait(1)
    assert (order.state, real_bank.asked) == ("processed", 1)


def test_payment_that_never_ends_is_taken_back_and_its_late_report_refused(
    shop, order, real_bank, report
):
    shop.wait(2 * HALF_HOUR)
    assert (order.state, order.undone) == ("undone", ["pay"])
    assert real_bank.refunds == [shop.calls("confirmed_bank.charge")[0].key]
    report()
    shop.go()
    assert (order.state, refusals()) == ("undone", ["REPORTED"])
    assert shop.calls("carrier.book") == []


def test_report_of_another_charge_ends_nothing(shop, order, report):
    shop.go()
    report(charge="ch_of_before")
    shop.go()
    assert order.steps["pay"] == "awaiting"
    assert refusals() == ["OTHER_ATTEMPT"]


def test_forged_report_is_refused(shop, order, report):
    shop.go()
    with pytest.raises(PermissionDenied):
        report(secret=b"another")
    assert TaskRequest.objects.count() == 0


def test_undo_beside_a_report_ends_one_way(shop, order, report):
    shop.go()
    request_undo("confirmed", "o-1", actor="ann", reason="the customer left", id=uuid4())
    report()
    shop.go()
    assert (order.state, order.undone) == ("undone", ["pay"])


@pytest.fixture
def asked(real_bank, shop):
    return shop.submit("asked", DATA, reference="o-2")


def test_bank_is_asked_every_ten_minutes_until_it_is_ready(shop, asked, real_bank):
    shop.wait(5_400)
    assert asked.steps["pay"] == "awaiting"
    assert real_bank.asked == 9
    assert (Alert.objects.count(), Incident.objects.count(), Attempt.objects.count()) == (0, 0, 1)
    real_bank.ends = "paid"
    shop.wait(600)
    assert asked.state == "processed"
    assert len(real_bank.charges) == 1


def test_questions_that_fail_change_nothing(shop, page):
    shop.script("asked_bank.charge", outcomes.later({"id": "ch_0"}, look=600))
    shop.answer("asked_bank.charge", outcomes.transient(), outcomes.in_doubt(), outcomes.done())
    asked = shop.submit("asked", DATA, reference="o-2")
    shop.wait(3 * 600)
    assert asked.state == "processed"
    assert (asked.step("pay").failure_count, Incident.objects.count()) == (0, 0)


def test_bank_that_is_never_ready_is_taken_back(shop, asked, real_bank):
    shop.wait(2 * 3_600 + 60)
    assert (asked.state, asked.undone) == ("undone", ["pay"])
    assert real_bank.refunds == [*real_bank.charges]


def test_plain_payments_do_not_wait_for_pending_ones(shop, real_bank):
    """A pending charge does not count as a failure of its bank: the breaker stays closed."""
    pending = [shop.submit("asked", DATA) for _ in range(30)]
    shop.wait(1_200)
    real_bank.ends = "paid"
    plain = shop.submit("asked", DATA)
    shop.go()
    assert plain.state == "processed"
    shop.wait(600)
    assert {order.state for order in pending} == {"processed"}
