"""What operators find orders by besides what the engine knows: typed numbers, names, parcels."""

from uuid import UUID, uuid4

import pytest

from orchestration.models import Task
from orders.lifecycle import operator_search
from orders.lifecycle.message import EMAIL_WORKFLOW, WORKFLOW, order_number
from orders.models import Order
from tests.support.operators import browser, person
from tests.support.page import listed, page
from tests.support.shop import declined, finish_all, inform, placed, products

pytestmark = pytest.mark.django_db


@pytest.fixture
def order(client):
    products()
    order = placed(client, sku_0=2)
    # "0" and "1" are what people read as letters
    Task.objects.filter(reference=str(order)).update(label="7KQ01-9XD2P")
    return order


def found(query, *, personal=True):
    rights = ["operate", *(["see_personal"] if personal else [])]
    viewer = browser(person(uuid4().hex, *rights))
    return listed(viewer.get("/ops/tasks/", {"q": query}))


@pytest.mark.parametrize(
    "typed",
    ["7KQ01-9XD2P", "7kq019xd2p", "7KQOI9XD2P", "7kqol-9xd2p", "7kqoi", '"7KQ01 9XD2P"', "7KQ01 9XD2P"],
)  # fmt: skip
def test_number_is_found_as_people_type_it(order, typed):
    assert found(typed, personal=False) == ["7KQ01-9XD2P"]


@pytest.mark.parametrize("typed", ["7kq02", "8KQOI9XD2P", "7KQ01-9XD2PX"])
def test_other_number_is_not_found(order, typed):
    assert found(typed) == []


@pytest.mark.parametrize(
    "typed", ["lovelace", "Love", "ada lovelace", '"Lovelace, Ada"', "lovelace ada"]
)
def test_name_is_found_by_those_who_may_see_it(order, typed):
    Order.objects.filter(id=order).update(name="Ada King-Lovelace")
    expected = [] if "," in typed else ["7KQ01-9XD2P"]
    assert found(typed) == expected
    assert found(typed, personal=False) == []


@pytest.mark.parametrize(
    "typed", ["o'brien", "d\u2019arcy", "lovelace:* | a", "!lovelace", "'", "love\\", "&"]
)
def test_signs_in_a_name_do_no_harm(order, typed):
    Order.objects.filter(id=order).update(name="Ada O'Brien")
    assert found(f'"{typed}"') == (["7KQ01-9XD2P"] if typed == "o'brien" else [])


def test_name_of_more_orders_than_are_listed_is_noted(order, client, monkeypatch):
    placed(client, sku_0=2)
    monkeypatch.setattr(operator_search, "MOST", 1)
    viewer = browser(person("vic", "operate", "see_personal"))
    response = viewer.get("/ops/tasks/", {"q": "lovelace"})
    assert len(listed(response)) == 1
    assert page(response).one("[data-more]")["data-more"] == "lovelace"


def test_parcel_is_found_once_it_is_booked(order):
    finish_all()
    inform()
    parcel = Order.objects.get(id=order).parcel
    assert len(parcel) >= operator_search.SHORTEST_PARCEL
    for typed in (parcel, parcel.lower(), parcel[:4]):
        assert found(typed, personal=False) == ["7KQ01-9XD2P"]
    assert found(f"{parcel}0") == []


def test_exact_number_opens_the_order_not_its_emails(client):
    products()
    order = declined(client)
    number = order_number(UUID(str(order)))
    Task.objects.filter(workflow=EMAIL_WORKFLOW).update(label=number)
    task = Task.objects.get(workflow=WORKFLOW, reference=str(order))
    viewer = browser(person("vic", "operate"))
    apart = number.replace("-", " ").lower()
    for typed in (number, number.replace("-", "").lower(), apart, str(order), str(task.id)):
        opened = viewer.get("/ops/tasks/", {"q": typed, "open": "1"})
        assert (opened.status_code, opened["Location"]) == (303, f"/ops/tasks/{task.id}/"), typed
        assert viewer.get("/ops/tasks/", {"q": typed}).status_code == 200
    for typed in (number[:6], f"{number} {order}x", f"{number} state:error", "state:error"):
        opened = viewer.get("/ops/tasks/", {"q": typed, "open": "1"})
        assert opened["Location"].startswith("/ops/tasks/?q="), typed
