"""How orders of a subscription end: declined and other cards, the bank that asks, and the pause."""

import pytest

from orchestration.testing.outcomes import done, later, rejected
from orders.lifecycle import changes
from orders.subscriptions import acts
from tests.support.subscriptions import DAY, letters, orders_of, placed_on, subscribed

pytestmark = pytest.mark.django_db
DECLINED = rejected("card_declined")
ASKED = later({"id": "pi_1", "status": "requires_action"}, id="pi_1", look=300)


def stands(row):
    row.refresh_from_db()
    return row.state, row.because, row.unpaid, row.payment_method


def paid(row):
    return list(row.orders.order_by("on").values_list("paid", flat=True))


def test_paid_orders_are_noted(run):
    mine = subscribed()
    run.wait(15 * DAY)
    assert paid(mine) == ["paid", "paid"]
    assert stands(mine) == ("active", "", 0, "pm_card_visa")


@pytest.fixture
def declined(run):
    """A subscription whose first order was declined."""
    run.script("payment.authorize", DECLINED)
    mine = subscribed(payment_method="pm_card_visa_chargeDeclined")
    run.go()
    return mine


def test_other_card_of_an_order_is_remembered(run, declined):
    run.script("payment.authorize", done(id="pi_1", status="requires_capture"))
    (order,) = orders_of(declined)
    assert order.status == "failed"
    assert changes.other_card(order.id, 1, "pm_card_visa") is None
    run.go()
    assert stands(declined) == ("active", "", 0, "pm_card_visa")
    run.wait(15 * DAY)
    assert orders_of(declined)[1].payment_method == "pm_card_visa"


def test_card_that_the_customer_chose_meanwhile_stays(run, declined):
    (order,) = orders_of(declined)
    values = {name: getattr(declined, name) for name in acts.CHANGEABLE}
    acts.change(declined.id, {**values, "payment_method": "pm_card_sandbox_bankApp"})
    run.script("payment.authorize", done(id="pi_1", status="requires_capture"))
    changes.other_card(order.id, 1, "pm_card_visa")
    run.go()
    assert stands(declined)[3] == "pm_card_sandbox_bankApp"


def test_second_unpaid_order_in_a_row_pauses_with_a_letter(run, declined):
    run.wait(13 * DAY)  # the first is undone as the customer does nothing
    assert paid(declined) == ["unpaid"]
    assert stands(declined)[:3] == ("active", "", 1)
    assert letters(declined, "halted") == []
    run.wait(14 * DAY)
    assert (paid(declined), placed_on(declined)) == (["unpaid"] * 2, [0, 14])
    assert stands(declined)[:3] == ("paused", "unpaid", 2)
    run.wait(30 * DAY)
    assert (placed_on(declined), len(letters(declined, "halted"))) == ([0, 14], 1)


def test_paid_order_begins_the_count_anew(run, declined):
    run.wait(13 * DAY)
    run.script("payment.authorize", done(id="pi_2", status="requires_capture"), DECLINED)
    run.wait(28 * DAY)
    assert paid(declined) == ["unpaid", "paid", "unpaid"]
    assert stands(declined)[:3] == ("active", "", 1)


def test_customer_who_does_not_confirm_at_the_bank_counts_as_not_paid(run):
    run.script("payment.authorize", ASKED)
    run.answer("payment.authorize", ASKED)
    mine = subscribed(payment_method="pm_card_threeDSecure2Required")
    run.wait(DAY)
    assert paid(mine) == ["unpaid"]


def test_order_that_its_customer_cancels_is_not_an_unpaid_one(run):
    run.script("shipping.book", rejected("address_unknown"))
    mine = subscribed()
    run.go()
    (order,) = orders_of(mine)
    assert changes.cancel(order.id) is None
    run.go()
    assert (paid(mine), stands(mine)[2]) == (["cancelled"], 0)


def test_resumed_subscription_counts_anew(run, declined):
    run.wait(29 * DAY)
    assert acts.resume(declined.id, 1000).unpaid == 0
    run.script("payment.authorize", done(id="pi_2", status="requires_capture"))
    run.wait(2 * DAY)
    assert paid(declined)[-1] == "paid"
