"""Staff report in the admin that the parcel of a return has arrived, and decide about it."""

import json
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from orchestration.models import Step
from orchestration.testing.outcomes import done
from orders.lifecycle import returns
from orders.models import Order, Return
from orders.shop.exchange_wish import wish
from tests.support.exchanges import inspected
from tests.support.operators import browser, person
from tests.support.page import page
from tests.support.shop import fill_cart, open_checkout, order_in, products, send

pytestmark = pytest.mark.django_db


@pytest.fixture
def order(run, client):
    products()
    fill_cart(client, sku_0=2)
    run.script("shipping.label", done(id="lbl_1", tracking="RET1"))
    order = order_in(send(client, open_checkout(client)))
    run.go()
    returns.ask(order, {"sku-0": 1}, "damaged", id_=uuid4())
    run.go()
    run.wait(2)
    return order


@pytest.fixture
def owner():
    return browser(person("boss", is_staff=True, is_superuser=True))


def test_staff_report_the_parcel_once(run, owner, order):
    address = f"/admin/orders/order/{order}/returns/"
    change = f"/admin/orders/order/{order}/change/"
    assert address in owner.get(change).text
    form = page(owner.get(address)).only("form[data-return]")
    sent = {"return": form["data-return"]}
    for _ in range(2):
        answer = owner.post(address, sent)
        assert (answer.status_code, answer["Location"]) == (302, change)
    run.go()
    assert Return.objects.get().state == "arrived"
    assert run.task("return_order", sent["return"]).steps["inspect_goods"] == "awaiting"
    assert not page(owner.get(address)).all("form[data-return]")


def test_return_of_another_order_or_of_none_is_not_found(owner, order):
    for wrong in (str(uuid4()), "x", ""):
        answer = owner.post(f"/admin/orders/order/{order}/returns/", {"return": wrong})
        assert answer.status_code == 404
    assert Return.objects.get().state == "awaited"


def test_report_needs_its_permission(order):
    viewer = browser(person("viewer", "view_order", is_staff=True))
    address = f"/admin/orders/order/{order}/returns/"
    assert viewer.get(address).status_code == 403
    assert address not in viewer.get(f"/admin/orders/order/{order}/change/").text


def test_member_of_the_group_decides_on_the_dashboard(run, order):
    row = Return.objects.get()
    returns.arrived(row.id, by="wim")
    run.go()
    step = Step.objects.get(name="inspect_goods", direction="do")
    member = person("rita", "operate", "correct", "see_personal")
    member.groups.add(Group.objects.create(name=returns.ROLE))
    address = reverse("ops:record", args=[step.id])
    assert address in browser(member).get("/ops/decisions/").text
    seen = {"percent": 50, "restock": True, "note": "The lid is missing."}
    for wrong in ({"percent": 101}, {"percent": -1}, {"note": "x" * 121}):
        assert decide(member, address, {**seen, **wrong}).status_code == 422
    decide(member, address, seen)
    run.go()
    row.refresh_from_db()
    assert (row.state, row.paid, row.note) == ("refunded", 500, "The lid is missing.")


def decide(member, address, seen):
    sent = {"attempt": 0, "ended": "done", "payload": json.dumps(seen), "reason": "looked at it"}
    return browser(member).post(address, sent)


def test_staff_see_the_wish_and_both_orders_linked(run, owner, order):
    of = Order.objects.get(id=order)
    same = wish({"sku-0": 1}, of.country)
    row = returns.ask(of.id, {"sku-0": 1}, "damaged", id_=uuid4(), wish=same)
    row = inspected(run, row)
    first, second = (f"/admin/orders/order/{id_}/change/" for id_ in (order, row.replacement))
    shown = owner.get(first).text
    assert "1 x Product 0, at €10.00" in shown
    assert f'href="{second}"' in shown
    assert f'href="{first}"' in owner.get(second).text
    request = Step.objects.get(task__reference=str(row.id), name="inspect_goods", direction="do")
    assert request.request["exchange"] == "1 x Product 0"


def test_admin_page_of_an_order_with_exchanges_query_count(
    run, owner, order, django_assert_max_num_queries
):
    of = Order.objects.get(id=order)
    returns.ask(of.id, {"sku-0": 1}, "damaged", id_=uuid4(), wish=wish({"sku-0": 1}, of.country))
    with django_assert_max_num_queries(20):
        owner.get(f"/admin/orders/order/{order}/change/")
