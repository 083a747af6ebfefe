"""An order's page: what each visitor sees, polling, and the form to find an order."""

import re
import time
from uuid import uuid4

import pytest
from django.test import Client

from orchestration import submission
from orchestration.models import Task
from orchestration.models.fields import DatabaseNow
from orchestration.testing.outcomes import done
from orchestration.transitions.replies import record
from orders.lifecycle import paying, tracking
from orders.lifecycle.access import link, signature, staff_link
from orders.lifecycle.message import EMAIL_WORKFLOW
from orders.lifecycle.numbers import order_number
from orders.lifecycle.operator_view import customer_view
from orders.lifecycle.stages import STEPS
from orders.models import Order
from orders.shop.views.order import NOT_FOUND
from tests.support.engine import claimed, reply_to
from tests.support.operators import browser, person
from tests.support.shop import (
    buy,
    carry_out,
    current_stages,
    declined,
    inform,
    order_page,
    placed,
    poll_address,
    products,
    verdict,
    visit,
    without_input,
)

pytestmark = pytest.mark.django_db
PERSONAL = ("Lovelace", "Rue de Lyon", "1203", "Genève", "ada@example.org", "€20.00", "Product 0")


@pytest.fixture
def order(client):
    products()
    return placed(client, sku_0=2)


def test_order_page_of_the_customer(client, order):
    for seen in (visit(client, f"/orders/{order}/"), visit(Client(), link(order))):
        assert all(word in seen for word in PERSONAL)
        assert order_number(order) in seen
        assert STEPS["reserve_stock"][1] in current_stages(seen)


def test_order_page_of_a_stranger_is_a_stub(order):
    for address in (
        f"/orders/{order}/",
        f"/orders/{order}/?t=",
        f"/orders/{order}/?t={signature(uuid4())}",
        f"/orders/{order}/?t=é",
        f"/orders/{order}/status/",
    ):
        seen = visit(Client(), address)
        assert not [word for word in PERSONAL if word in seen]
        assert "data-stub" in seen


def test_order_page_by_a_staff_link_is_read_only(order):
    staff = Client()
    address = staff_link(order)
    seen = visit(staff, address)
    assert all(word in seen for word in PERSONAL)
    assert 'id="cancel"' in visit(Client(), link(order))
    assert 'id="cancel"' not in seen
    assert staff.get(poll_address(seen)).status_code == 204
    look = address.partition("?")[2]
    assert staff.post(f"/orders/{order}/cancel/?{look}").status_code == 404
    assert "data-stub" in visit(Client(), f"/orders/{order}/?{look[:-2]}")


def test_operator_view_of_an_order(order):
    view = customer_view(str(order), True)
    assert (view.who, view.mood) == ("the customer", "info")
    assert view.sentence == tracking.WORKING
    assert "look=" in view.url
    assert customer_view(str(uuid4()), True) is None
    assert customer_view("no order", True) is None


def test_operator_view_for_an_operator_without_personal_data(client):
    products()
    order = declined(client)
    full, redacted = customer_view(str(order), True), customer_view(str(order), False)
    assert full.sentence == f"{paying.PLAINLY_DECLINED} {tracking.NOTHING_CHARGED}"
    assert (redacted.sentence, redacted.mood) == (full.sentence, "error")
    assert redacted.url == ""  # a stranger's page shows another sentence
    task = Task.objects.get(reference=order)
    viewer = browser(person("vic", "operate"))
    shown = viewer.get(f"/ops/tasks/{task.id}/").text
    assert full.sentence in shown
    assert not [word for word in PERSONAL[:5] if word in shown]


def test_order_number_finds_the_order_not_its_emails(client):
    products()
    order = declined(client)
    submission.take(100)
    assert Task.objects.filter(label=order_number(order), workflow=EMAIL_WORKFLOW).exists()
    viewer = browser(person("vic", "operate"))
    for query, number in (("", 1), (" with:background", Task.objects.count())):
        shown = viewer.get("/ops/tasks/", {"q": f"{order_number(order)}{query}"}).text
        assert len(re.findall("data-open", shown)) == number


def test_order_page_of_an_unknown_order(client):
    assert client.get(f"/orders/{uuid4()}/").status_code == 404
    assert client.get(f"/orders/{uuid4()}/status/").status_code == 404


def test_order_page_before_the_submission_is_taken(client):
    products()
    order = buy(client)
    seen = order_page(client, order)
    assert verdict(seen) == tracking.RECEIVED
    assert order_number(order) in seen


def test_poll_without_changes_is_empty(client, order):
    seen = visit(Client(), link(order))
    address = poll_address(seen)
    assert "every 1000ms" in seen
    assert f"t={signature(order)}" in address
    assert Client().get(address).status_code == 204
    changed = Client().get(re.sub(r"v=[^&]+", "v=older", address))
    assert changed.status_code == 200
    assert "<html" not in changed.text
    assert "HX-Request" in changed["Vary"]
    assert "no-store" in changed["Cache-Control"]


def test_poll_returns_the_live_part_of_the_page(client, order):
    whole = visit(client, link(order))
    partial = visit(client, f"/orders/{order}/status/?t={signature(order)}")
    token = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')  # differs each time
    assert token.sub("", partial).strip() in token.sub("", whole)


def test_order_page_of_a_final_order_does_not_poll(run, client, order):
    run.script("shipping.book", done(id="shp_1", tracking="TRK1"))
    run.go()
    seen = order_page(client, order)
    assert verdict(seen) == tracking.CONFIRMED
    assert "TRK1" in seen
    assert poll_address(seen) is None


def test_find_by_number_and_email(client, order):
    right = {"number": order_number(order).lower(), "email": "ADA@example.org"}
    response = Client().post("/orders/find/", right)
    assert (response.status_code, response["Location"]) == (303, link(order))


def test_find_with_a_wrong_email_or_number(client, order):
    number = order_number(order)
    answer, other = (
        without_input(Client().post("/orders/find/", {"number": typed, "email": email}).text)
        for typed, email in ((number, "bob@example.org"), ("00000-00000", "ada@example.org"))
    )
    assert answer == other
    assert str(NOT_FOUND) in answer


def test_order_page_query_count(order, django_assert_max_num_queries):
    # the placed order; its snapshot; the order with its lines
    with django_assert_max_num_queries(3):
        visit(Client(), link(order))


def test_poll_without_changes_query_count(client, order, django_assert_num_queries):
    for visitor in (Client(), client):
        address = poll_address(visit(visitor, link(order)))
        with django_assert_num_queries(1):
            answer = visitor.get(address)
        assert (answer.status_code, answer.content) == (204, b"")
        assert "Set-Cookie" not in answer.headers


def test_poll_has_a_new_version_after_each_change(client, order):
    shown = {}

    def look():
        """Keep what is shown by its version; a version must not stand for two contents."""
        inform()
        text = visit(client, f"/orders/{order}/status/?t={signature(order)}")
        version = re.search(r"v=(\w+)", text)
        plain = re.sub(r'hx-get="[^"]+"|name="csrfmiddlewaretoken" value="\w+"', "", text)
        assert shown.setdefault(version and version[1], plain) == plain
        return len(shown)

    assert look() == 1
    (request,) = claimed(agent="payment")
    assert look() == 1
    record([reply_to(request, "transient")])
    assert look() == 2
    record([reply_to(claimed(agent="inventory")[0], "done", result={"reservation_id": "r"})])
    assert look() == 3
    Order.objects.update(waits_until=DatabaseNow())
    assert look() == 4
    client.post(f"/orders/{order}/cancel/?t={signature(order)}")
    assert look() == 5
    carry_out()
    assert look() == 6


def test_poll_in_another_language(client, order):
    address = poll_address(visit(client, link(order)))
    assert client.get(address, headers={"Accept-Language": "de"}).status_code == 200


def test_poll_after_its_version_expired(client, order):
    address = poll_address(visit(client, link(order)))
    past = re.sub(r"(v=\w+)-\d+", rf"\1-{int(time.time()):010}", address)
    assert client.get(past).status_code == 200
    for odd in ("", "-", "-x", "-1"):
        assert client.get(re.sub(r"(v=\w+)-\d+", rf"\1{odd}", address)).status_code in {200, 204}


def test_poll_with_an_expired_staff_link(order):
    address = poll_address(visit(Client(), staff_link(order)))
    assert Client().get(address).status_code == 204
    stub = Client().get(re.sub(r"look=[^&]+", "look=older", address))
    assert stub.status_code == 200
    assert not [word for word in PERSONAL if word in stub.text]
    Order.objects.filter(id=order).update(customer=7)
    assert Client().get(re.sub(r"look=[^&]+", "look=older", address)).status_code == 404


def test_find_among_orders_with_the_same_number(order):
    twin = Order.objects.get(id=order)
    twin.pk, twin.email = uuid4(), "bob@example.org"
    twin.save(force_insert=True)
    response = Client().post("/orders/find/", {"number": twin.number, "email": "bob@example.org"})
    assert str(twin.pk) in response["Location"]


def test_order_page_thanks_unless_the_order_failed(client, order):
    assert "data-thanks" in visit(client, link(order))
    (request,) = claimed(agent="payment")
    record([reply_to(request, "rejected", code="card_declined")])
    inform()
    seen = visit(client, link(order))
    assert verdict(seen) == f"{paying.PLAINLY_DECLINED} {tracking.NOTHING_CHARGED}"
    assert "data-thanks" not in seen
    assert f"Order {order_number(order)}</h1>" in seen
