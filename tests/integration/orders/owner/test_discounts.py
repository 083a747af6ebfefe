"""Discount codes: who may use one, how often, and that limits hold."""

import threading
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from orchestration.models import Submission, Task
from orders.charges import Discount, charge
from orders.lifecycle import discounts, placement
from orders.lifecycle.discounts import NotValid, find, give_back, use
from orders.models import DiscountCode, DiscountUse, Order, Placement, ShippingPrice
from orders.rate_limit import Limit
from tests.support.operators import browser, person
from tests.support.page import elements
from tests.support.shop import (
    carry_out,
    fill_cart,
    message,
    open_checkout,
    order_in,
    order_page,
    send,
    token_of,
)
from tests.support.together import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shelf")]
ADA = "ada@example.org"


def code(**values):
    return DiscountCode.objects.create(**{"code": "SPRING", "percent": 1000, **values})


def with_code(order=None, email=ADA, off=200):
    """Return the message of an order whose customer typed the code."""
    plain = message(order, email=email)
    charges = charge(plain.lines, discount=Discount(code="SPRING", amount=off), rates={})
    return message(plain.order, email=email, charges=charges, total=2000 - off)


def test_code_is_found_in_any_case():
    code()
    assert find(" spring ", 2000) == Discount(code="SPRING", percent=1000)
    assert find("Spring", 2000).of(2000) == 200


@pytest.mark.parametrize(
    "values",
    [
        {"active": False},
        {"starts_at": timedelta(hours=1)},
        {"ends_at": timedelta(hours=-1)},
        {"minimum": 2001},
        {"most": 0},
        {"most": 3, "used": 3},
        {"percent": 0, "amount": 2001},
        {"currency": "USD"},
    ],
)
def test_code_that_cannot_be_used_is_refused(values):
    now = timezone.now()
    code(**{
        name: now + value if isinstance(value, timedelta) else value
        for name, value in values.items()
    })  # fmt: skip
    with pytest.raises(NotValid):
        find("SPRING", 2000)


def test_code_within_its_bounds_is_found():
    now = timezone.now()
    hour = timedelta(hours=1)
    code(starts_at=now - hour, ends_at=now + hour, minimum=2000, most=1, most_each=1)
    assert find("SPRING", 2000, ADA)


def test_unknown_code_is_refused():
    with pytest.raises(NotValid):
        find("WINTER", 2000)


def test_customer_may_use_it_so_often_in_any_form_of_the_address():
    code(most_each=1)
    use(message().order, "SPRING", 2000, "Ada@Example.org")
    with pytest.raises(NotValid):
        find("SPRING", 2000, ADA)
    assert find("SPRING", 2000, "bea@example.org")


def test_order_has_the_discount_and_counts_it(client):
    code()
    fill_cart(client, sku_0=2)
    first = send(client, open_checkout(client), discount_code="spring")
    assert first.status_code == 422  # the total is another one than was shown
    assert 'data-sum="discount"' in first.text
    order = order_in(send(client, token_of(first), discount_code="spring"))
    carry_out()
    row = Order.objects.get(id=order)
    assert (row.total, row.charges["discount"], row.charges["code"]) == (1800, 200, "SPRING")
    assert DiscountCode.objects.get().used == 1
    assert DiscountUse.objects.get().order == order
    assert (
        elements(order_page(client, order)).only('[data-sum="discount"]').only("dd").text
        == "−€2.00"  # noqa: RUF001 - a minus sign
    )


def test_typed_code_is_shown_before_the_order(client):
    code()
    fill_cart(client, sku_0=2)
    open_checkout(client)
    form = {"country": "CH", "discount_code": "SPRING"}
    part = client.post("/checkout/sums/", form, headers={"HX-Request": "true"})
    assert elements(part.text).only("#code-wrong").text == ""
    assert send(client, token_of(part), discount_code="SPRING").status_code == 303
    form["discount_code"] = "WINTER"
    fill_cart(client, sku_0=1)
    part = client.post("/checkout/sums/", form, headers={"HX-Request": "true"})
    assert elements(part.text).only("#code-wrong").text


def test_wrong_code_is_an_error_of_its_field_and_orders_nothing(client):
    fill_cart(client, sku_0=2)
    answer = send(client, open_checkout(client), discount_code="WINTER")
    assert answer.status_code == 422
    assert 'id="id_discount_code_error"' in answer.text
    assert not Placement.objects.exists()


def test_shipping_is_free_by_the_price_less_the_discount(client):
    code()
    ShippingPrice.objects.create(price=490, free_from=2000)
    fill_cart(client, sku_0=2)
    part = send(client, open_checkout(client), discount_code="SPRING")
    assert send(client, token_of(part), discount_code="SPRING").status_code == 303
    assert Submission.objects.get(workflow="process_order").data["total"] == 1800 + 490


def test_sent_again_is_one_use(client):
    code(most=1)
    fill_cart(client, sku_0=2)
    token = token_of(send(client, open_checkout(client), discount_code="SPRING"))
    first = send(client, token, discount_code="SPRING")
    assert send(client, token, discount_code="SPRING")["Location"] == first["Location"]
    assert DiscountCode.objects.get().used == 1


def test_code_that_others_used_up_meanwhile_orders_nothing(client, monkeypatch):
    """Between the look at the code and the placement another order takes the last use."""
    code(most=1)
    fill_cart(client, sku_0=2)
    token = token_of(send(client, open_checkout(client), discount_code="SPRING"))
    seen = discounts.find

    def faster(*known):
        discount = seen(*known)
        use(message().order, "SPRING", 2000, "bea@example.org")
        return discount

    monkeypatch.setattr(discounts, "find", faster)
    answer = send(client, token, discount_code="SPRING")
    assert answer.status_code == 422
    assert 'id="id_discount_code_error"' in answer.text
    assert not Placement.objects.exists()
    assert client.get("/checkout/").status_code == 200  # the cart is as it was


def test_code_that_a_second_click_used_up_leads_to_the_order(client, monkeypatch):
    """Between two looks of a request, the same page sent once more takes the last use."""
    code(most=1)
    fill_cart(client, sku_0=2)
    token = token_of(send(client, open_checkout(client), discount_code="SPRING"))
    seen = discounts.find

    def slower(*known):
        monkeypatch.setattr(discounts, "find", seen)
        assert send(client, token, discount_code="SPRING").status_code == 303
        return seen(*known)

    monkeypatch.setattr(discounts, "find", slower)
    answer = send(client, token, discount_code="SPRING")
    assert answer.status_code == 303
    assert order_in(answer) == Placement.objects.get().order


def test_undone_order_gives_its_use_back(client):
    code(most=1)
    fill_cart(client, sku_0=2)
    token = token_of(send(client, open_checkout(client), discount_code="SPRING"))
    order = order_in(send(client, token, discount_code="SPRING"))
    carry_out()
    assert client.post(f"/orders/{order}/cancel/").status_code == 303
    carry_out()
    assert Order.objects.get(id=order).status == "undone"
    assert (DiscountCode.objects.get().used, DiscountUse.objects.count()) == (0, 0)
    assert find("SPRING", 2000, ADA)


def test_use_is_given_back_once():
    code()
    order, other = message().order, message().order
    use(order, "SPRING", 2000, ADA)
    use(other, "SPRING", 2000, ADA)
    for _ in range(2):
        give_back([order])
    assert DiscountCode.objects.get().used == 1


def test_orders_without_a_code_cost_one_query_at_the_end(django_assert_num_queries):
    with django_assert_num_queries(3):  # the look, between the savepoint's two
        give_back([message().order for _ in range(5)])


def place_both():
    """Place two orders with the last use of a code, the second one while the first is not committed."""
    first, second = with_code(), with_code(email="bea@example.org")
    begun, waits = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            placement.place(first, "a" * 64)
            begun.set()
            waits.wait(10)
        return "placed"

    def follow():
        begun.wait(10)
        try:
            return place_waiting(second, waits)
        except NotValid:
            return "refused"

    return at_once({"first": hold, "second": follow})


def place_waiting(sent, waits):
    """Place an order, and set the event once its session waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        ((session,),) = cursor.fetchall()
    watcher = threading.Thread(target=partial(watch, session, waits))
    watcher.start()
    try:
        placement.place(sent, "b" * 64)
        return "placed"
    finally:
        watcher.join()


def watch(session, waits):
    """Set an event once a session waits for a lock."""
    try:
        for _ in range(10_000):
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s",
                    [session],
                )
                if cursor.fetchone() == (True,):
                    break
    finally:
        waits.set()
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_two_at_once_cannot_both_take_the_last_use():
    code(most=1)
    assert place_both() == {"first": "placed", "second": "refused"}
    assert DiscountCode.objects.get().used == DiscountUse.objects.count() == 1
    assert Placement.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_without_the_lock_both_take_the_last_use(monkeypatch):
    """What the test above shows is the lock's doing."""
    monkeypatch.setattr(discounts, "locked", lambda rows: rows)
    code(most=1)
    assert place_both() == {"first": "placed", "second": "placed"}
    assert DiscountCode.objects.get().used == 2


@pytest.mark.django_db(transaction=True)
def test_many_at_once_use_it_as_often_as_it_says():
    code(most=3)

    def place(number):
        try:
            placement.place(with_code(email=f"{number}@example.org"), "a" * 64)
        except NotValid:
            return False
        return True

    placed = at_once({number: partial(place, number) for number in range(8)})
    assert sum(placed.values()) == 3
    assert DiscountCode.objects.get().used == DiscountUse.objects.count() == 3


@pytest.fixture
def owner():
    return browser(person("boss", is_staff=True, is_superuser=True))


NEW = {
    "code": "summer-10", "percent": "10", "amount": "0", "minimum": "25", "starts_at_0": "",
    "starts_at_1": "", "ends_at_0": "", "ends_at_1": "", "most": "", "most_each": "", "active": "on",
}  # fmt: skip


def test_owner_adds_a_code_in_capitals(owner):
    assert owner.post("/admin/orders/discountcode/add/", NEW).status_code == 302
    row = DiscountCode.objects.get()
    assert (row.code, row.percent, row.minimum, row.currency) == ("SUMMER-10", 1000, 2500, "EUR")


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "50 %"},
        {"amount": "5"},
        {"percent": "0"},
        {"percent": "100.01"},
        {
            "starts_at_0": "2030-02-01",
            "starts_at_1": "00:00",
            "ends_at_0": "2030-01-01",
            "ends_at_1": "00:00",
        },
        {"most": "-1"},
    ],
)
def test_owner_is_refused_what_no_code_can_be(owner, changes):
    assert owner.post("/admin/orders/discountcode/add/", {**NEW, **changes}).status_code == 200
    assert not DiscountCode.objects.exists()


def test_code_that_was_used_is_not_deleted(owner):
    row = code()
    use(message().order, "SPRING", 2000, ADA)
    assert (
        owner.post(f"/admin/orders/discountcode/{row.pk}/delete/", {"post": "yes"}).status_code
        == 403
    )
    assert DiscountCode.objects.exists()


def test_task_of_an_order_names_the_code():
    code()
    placement.place(with_code(), "a" * 64)
    carry_out()
    assert Task.objects.get(workflow="process_order").data["charges"]["code"] == "SPRING"


def test_guesses_of_codes_are_limited(monkeypatch):
    monkeypatch.setattr("orders.shop.views.checkout.CODES", Limit("discount", most=1, seconds=600))
    code()
    client = Client()
    fill_cart(client, sku_0=2)
    open_checkout(client)
    form = {"country": "CH", "discount_code": "WINTER"}
    client.post("/checkout/sums/", form, headers={"HX-Request": "true"})
    part = client.post(
        "/checkout/sums/", {**form, "discount_code": "SPRING"}, headers={"HX-Request": "true"}
    )
    assert 'data-sum="discount"' not in part.text
