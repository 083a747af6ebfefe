"""An order's page: live, in the customer's words, and personal only for its customer."""

import re
import time
from uuid import uuid4

import pytest
from django.test import Client

from orchestration import submission
from orchestration.models import Task
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.record import record
from orders.access import link, look_link, signature
from orders.message import LETTER, order_number
from orders.models import Order
from orders.sight import see
from tests.engine import claimed, reply_to
from tests.operators import browser, person
from tests.shop import buy, carry_out, declined, finish_all, inform, placed, products

pytestmark = pytest.mark.django_db
PERSONAL = ("Lovelace", "Rue de Lyon", "1203", "Genève", "ada@example.org", "€20.00", "Product 0")


@pytest.fixture
def order(client):
    products()
    return placed(client, sku_0=2)


def page(client, address):
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def poll_address(text):
    found = re.search(r'hx-get="([^"]+)"', text)
    return found and found[1].replace("&amp;", "&")


def test_the_customer_sees_everything(client, order):
    for seen in (page(client, f"/orders/{order}/"), page(Client(), link(order))):
        assert all(word in seen for word in PERSONAL)
        assert order_number(order) in seen
        assert "Setting your items aside" in seen


def test_a_stranger_sees_a_stub(order):
    for address in (
        f"/orders/{order}/",
        f"/orders/{order}/?t=",
        f"/orders/{order}/?t={signature(uuid4())}",
        f"/orders/{order}/?t=é",
        f"/orders/{order}/status/",
    ):
        seen = page(Client(), address)
        assert not [word for word in PERSONAL if word in seen]
        assert "Is this your order?" in seen


def test_staff_look_at_what_the_customer_sees_but_do_nothing_in_their_name(order):
    staff = Client()
    address = look_link(order)
    seen = page(staff, address)
    assert all(word in seen for word in PERSONAL)
    assert "Cancel" in page(Client(), link(order))
    assert "Cancel" not in seen
    assert staff.get(poll_address(seen)).status_code == 204
    look = address.partition("?")[2]
    assert staff.post(f"/orders/{order}/cancel/?{look}").status_code == 404
    assert "Is this your order?" in page(Client(), f"/orders/{order}/?{look[:-2]}")


def test_operators_are_told_what_the_customer_sees(order):
    told = see(str(order), True)
    assert (told.who, told.mood) == ("the customer", "info")
    assert "We received your order" in told.sentence
    assert "look=" in told.url
    assert see(str(uuid4()), True) is None
    assert see("no order", True) is None


def test_who_may_not_see_personal_data_is_told_the_same_sentence(client):
    products()
    order = declined(client)
    told, seen = see(str(order), True), see(str(order), False)
    assert told.sentence == "Your card was declined. Nothing was charged."
    assert (seen.sentence, seen.mood) == (told.sentence, "error")
    assert seen.url == ""  # a stranger's page says something else
    task = Task.objects.get(reference=order)
    viewer = browser(person("vic", "operate"))
    shown = viewer.get(f"/ops/tasks/{task.id}/").text
    assert f"What the customer sees: “{told.sentence}”" in shown
    assert not [word for word in PERSONAL[:5] if word in shown]


def test_an_orders_number_finds_the_order_and_not_its_letters(client):
    products()
    order = declined(client)
    submission.take(100)
    assert Task.objects.filter(label=order_number(order), workflow=LETTER).exists()
    viewer = browser(person("vic", "operate"))
    for query, number in (("", 1), (" with:background", Task.objects.count())):
        shown = viewer.get("/ops/tasks/", {"q": f"{order_number(order)}{query}"}).text
        assert len(re.findall("data-open", shown)) == number


def test_what_was_never_ordered_is_not_found(client):
    assert client.get(f"/orders/{uuid4()}/").status_code == 404
    assert client.get(f"/orders/{uuid4()}/status/").status_code == 404


def test_before_it_is_taken_the_page_says_it_was_received(client):
    products()
    order = buy(client)
    seen = page(client, f"/orders/{order}/")
    assert "We received your order" in seen
    assert order_number(order) in seen


def test_polling_gets_nothing_until_something_changes(client, order):
    seen = page(Client(), link(order))
    address = poll_address(seen)
    assert "every 1000ms" in seen
    assert f"t={signature(order)}" in address
    assert Client().get(address).status_code == 204
    changed = Client().get(re.sub(r"v=[^&]+", "v=older", address))
    assert changed.status_code == 200
    assert "<html" not in changed.content.decode()
    assert "HX-Request" in changed["Vary"]
    assert "no-store" in changed["Cache-Control"]


def test_the_page_contains_the_very_partial_that_polling_returns(client, order):
    whole = page(client, link(order))
    partial = page(client, f"/orders/{order}/status/?t={signature(order)}")
    token = re.compile(r'name="csrfmiddlewaretoken" value="\w+"')  # masked anew each time
    assert token.sub("", partial).strip() in token.sub("", whole)


def test_polling_ends_with_the_order(client, order):
    finish_all()
    seen = page(client, f"/orders/{order}/")
    assert "confirmed" in seen
    assert "TRK1" in seen
    assert poll_address(seen) is None


def test_finding_an_order_takes_number_and_address(client, order):
    right = {"number": order_number(order).lower(), "email": "ADA@example.org"}
    response = Client().post("/orders/find/", right)
    assert (response.status_code, response["Location"]) == (303, link(order))


def test_a_wrong_address_and_an_unknown_number_get_one_answer(client, order):
    number = order_number(order)
    answers = {
        re.sub(r'value="[^"]*"|X-CSRFToken[^}]*', "", response.content.decode())
        for response in (
            Client().post("/orders/find/", {"number": number, "email": "bob@example.org"}),
            Client().post("/orders/find/", {"number": "00000-00000", "email": "ada@example.org"}),
        )
    }
    assert len(answers) == 1
    assert "We found no order" in answers.pop()


def test_an_order_page_takes_few_queries(order, django_assert_max_num_queries):
    # what is known before anything is built; the snapshot; the order with its lines
    with django_assert_max_num_queries(3):
        page(Client(), link(order))


def test_a_look_without_news_takes_one_query_and_an_empty_answer(
    client, order, django_assert_num_queries
):
    for visitor in (Client(), client):
        address = poll_address(page(visitor, link(order)))
        with django_assert_num_queries(1):
            answer = visitor.get(address)
        assert (answer.status_code, answer.content) == (204, b"")
        assert "Set-Cookie" not in answer.headers


def test_what_changes_is_news_and_what_only_the_engine_sees_is_none(client, order):
    shown = {}

    def look():
        """Keep what is shown under its version, which must not stand for anything else."""
        inform()
        text = page(client, f"/orders/{order}/status/?t={signature(order)}")
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


def test_in_another_language_it_is_news(client, order):
    address = poll_address(page(client, link(order)))
    assert client.get(address, headers={"Accept-Language": "de"}).status_code == 200


def test_time_alone_is_news_when_it_changes_what_is_shown(client, order):
    address = poll_address(page(client, link(order)))
    past = re.sub(r"(v=\w+)-\d+", rf"\1-{int(time.time()):010}", address)
    assert client.get(past).status_code == 200
    for odd in ("", "-", "-x", "-1"):
        assert client.get(re.sub(r"(v=\w+)-\d+", rf"\1{odd}", address)).status_code in {200, 204}


def test_a_link_that_ended_shows_nothing_by_a_version_it_once_had(order):
    address = poll_address(page(Client(), look_link(order)))
    assert Client().get(address).status_code == 204
    stub = Client().get(re.sub(r"look=[^&]+", "look=older", address))
    assert stub.status_code == 200
    assert not [word for word in PERSONAL if word in stub.text]
    Order.objects.filter(id=order).update(customer=7)
    assert Client().get(re.sub(r"look=[^&]+", "look=older", address)).status_code == 404


def test_two_orders_with_one_number_are_told_apart(order):
    twin = Order.objects.get(id=order)
    twin.pk, twin.email = uuid4(), "bob@example.org"
    twin.save(force_insert=True)
    response = Client().post("/orders/find/", {"number": twin.number, "email": "bob@example.org"})
    assert str(twin.pk) in response["Location"]


def test_nobody_is_thanked_for_an_order_that_failed(client, order):
    assert "Thank you for your order</h1>" in page(client, link(order))
    (request,) = claimed(agent="payment")
    record([reply_to(request, "rejected", code="card_declined")])
    inform()
    seen = page(client, link(order))
    assert "Your card was declined" in seen
    assert "Thank you" not in seen
    assert f"Order {order_number(order)}</h1>" in seen
