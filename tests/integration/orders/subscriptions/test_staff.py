"""What staff see of subscriptions and do with them; the audit; the demo."""

import pytest

from orders.demo import subscribers
from orders.models import Subscription, SubscriptionOrder
from tests.support.operators import browser, person
from tests.support.page import page
from tests.support.subscriptions import letters, subscribed
from tests.support.violations import plant, violations

pytestmark = pytest.mark.django_db
LIST = "/admin/orders/subscription/"


@pytest.fixture
def boss():
    return browser(person("boss", is_staff=True, is_superuser=True))


def halted(row):
    row.refresh_from_db()
    return row.state, row.because, row.reason


def test_staff_find_subscriptions_and_their_orders(run, boss):
    mine, other = subscribed(), subscribed(email="bob@example.org")
    run.go()
    Subscription.objects.filter(id=other.id).update(state="paused", because="unpaid")
    for query in ("?state__exact=active", "?q=ada@example.org"):
        listed = boss.get(LIST + query).text
        assert str(mine.id) in listed
        assert str(other.id) not in listed
    assert str(other.id) in boss.get(LIST + "?because__exact=unpaid").text
    shown = boss.get(f"{LIST}{mine.id}/change/")
    assert f"/admin/orders/order/{mine.orders.get().order}/change/" in shown.text
    assert f"{LIST}{mine.id}/halt/" in shown.text


@pytest.mark.parametrize(("act", "state"), [("pause", "paused"), ("end", "ended")])
def test_staff_halt_one_with_a_reason_that_its_customer_reads(boss, act, state):
    mine = subscribed()
    form = page(boss.get(f"{LIST}{mine.id}/halt/")).only("form#halt")
    assert len(form.all('input[name="act"]')) == 2
    sent = {"act": act, "reason": "The roaster has moved."}
    answer = boss.post(f"{LIST}{mine.id}/halt/", sent)
    assert (answer.status_code, answer["Location"]) == (302, f"{LIST}{mine.id}/change/")
    assert halted(mine) == (state, "staff", sent["reason"])
    (letter,) = letters(mine, "halted")
    assert sent["reason"] in letter
    assert boss.post(f"{LIST}{mine.id}/halt/", sent).status_code == 422
    assert len(letters(mine, "halted")) == 1


@pytest.mark.parametrize("sent", [{"act": "pause", "reason": " "}, {"act": "x", "reason": "y"}, {}])
def test_halt_without_a_reason_changes_nothing(boss, sent):
    mine = subscribed()
    assert boss.post(f"{LIST}{mine.id}/halt/", sent).status_code == 422
    assert halted(mine) == ("active", "", "")


def test_halt_needs_its_permission():
    mine = subscribed()
    viewer = browser(person("viewer", "view_subscription", is_staff=True))
    assert viewer.get(f"{LIST}{mine.id}/change/").status_code == 200
    assert f"{LIST}{mine.id}/halt/" not in viewer.get(f"{LIST}{mine.id}/change/").text
    assert viewer.get(f"{LIST}{mine.id}/halt/").status_code == 403
    stranger = browser(person("stranger", is_staff=True))
    assert stranger.get(LIST).status_code == 403


def test_list_costs_a_constant_number_of_queries(boss, django_assert_max_num_queries):
    for _ in range(5):
        subscribed()
    with django_assert_max_num_queries(12):
        boss.get(LIST)


OVERDUE = "UPDATE orders_subscription SET next_on = next_on - 17 WHERE id = %(id)s"
NEVER_PLACED = 'DELETE FROM orders_placement WHERE "order" = %(order)s'
TWICE = """
INSERT INTO orders_subscriptionorder ("order", subscription_id, "on", unit_price, payment_method, paid)
SELECT gen_random_uuid(), subscription_id, "on", unit_price, payment_method, paid
FROM orders_subscriptionorder WHERE "order" = %(order)s
"""
DEARER = 'UPDATE orders_subscriptionorder SET unit_price = unit_price - 1 WHERE "order" = %(order)s'


@pytest.mark.parametrize(
    ("invariant", "statement", "about"),
    [(1, OVERDUE, "id"), (1, NEVER_PLACED, "order"), (2, TWICE, "id"), (3, DEARER, "order")],
)
def test_audit_finds_what_is_wrong_with_subscriptions(run, invariant, statement, about):
    mine = subscribed()
    run.go()
    assert violations() == []
    values = {"id": str(mine.id), "order": str(mine.orders.get().order)}
    plant(statement, **values)
    assert (invariant, values[about]) in {
        (broken.invariant, broken.reference) for broken in violations()
    }
    SubscriptionOrder.objects.all().delete()
    Subscription.objects.all().delete()


def test_demo_has_two_subscribers_once():
    orders = subscribers.subscribe()
    assert len(orders) == SubscriptionOrder.objects.count() == 2
    assert sorted(Subscription.objects.values_list("state", flat=True)) == ["active", "paused"]
    assert subscribers.subscribe() == []
