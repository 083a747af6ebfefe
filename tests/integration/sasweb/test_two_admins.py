"""Two people have the same form of the admin open: each keeps what the other changed."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from orchestration.models import (
    Application,
    FairnessWeight,
    NotificationChannel,
    Policy,
    RetentionPolicy,
    Schedule,
    StepPolicy,
    SupervisorPolicy,
)
from orders.models import DiscountCode, Product, ShippingPrice, TaxRate
from tests.support.form import fields_of
from tests.support.operators import browser, person
from tests.support.page import page
from tests.support.shop import products

pytestmark = pytest.mark.django_db
admin.autodiscover()  # as the URL configuration does, which may not be loaded yet


@dataclass(frozen=True)
class Edit:
    """A row, and what two people change in it: a field each, and two values of one field."""

    row: Any
    first: tuple[str, Any]
    second: tuple[str, Any]
    other: Any  # value of the first field


def product():
    products(1)
    return Product.objects.get()


EDITS = {
    "orders.product": lambda: Edit(product(), ("price", "10.50"), ("summary", "Better."), "11.00"),
    "orders.taxrate": lambda: Edit(
        TaxRate.objects.create(country="CH", tax_class="standard", percent=810), ("percent", "18.00"),
        ("tax_class", "reduced"), "17.00",
    ),
    "orders.shippingprice": lambda: Edit(
        ShippingPrice.objects.create(country="DE", price=490),
        ("price", "5.90"), ("free_from", "60.00"), "6.90",
    ),
    "orders.discountcode": lambda: Edit(
        DiscountCode.objects.create(code="SPRING", percent=1000), ("percent", "12.00"), ("most", "5"), "15.00"
    ),
    "orchestration.policy": lambda: Edit(
        Policy.objects.get(agent="greeter"), ("tries", "3"), ("failure_threshold", "6"), "4"
    ),
    "orchestration.steppolicy": lambda: Edit(
        StepPolicy.objects.get(workflow="greet", step="hello"),
        ("failure_threshold", "6"), ("resolve_within", "60.0"), "4",
    ),
    "orchestration.supervisorpolicy": lambda: Edit(
        SupervisorPolicy.objects.get(), ("approve_items", "7"), ("oldest_waiting", "301.0"), "8"
    ),
    "orchestration.retentionpolicy": lambda: Edit(
        RetentionPolicy.objects.get(workflow="greet"), ("keep_days", "31.0"), ("reason", "why"), "32"
    ),
    "orchestration.schedule": lambda: Edit(
        Schedule.objects.create(name="nightly", workflow="greet", data={"name": "Ada"}, cron="0 2 * * *"),
        ("priority", "5"), ("jitter", "60.0"), "6",
    ),
    "orchestration.fairnessweight": lambda: Edit(
        FairnessWeight.objects.create(key="big", weight=1), ("weight", "5.0"), ("reason", "why"), "6"
    ),
    "orchestration.application": lambda: Edit(
        Application.objects.create(name="till", rate=600), ("rate", "601"), ("max_priority", "1"), "602"
    ),
    "orchestration.notificationchannel": lambda: Edit(
        NotificationChannel.objects.create(name="duty", kind="email", address="a@example.org"),
        ("address", "b@example.org"), ("active", None), "c@example.org",
    ),
    "auth.user": lambda: Edit(
        person("lea", is_staff=True), ("email", "lea@example.org"), ("is_active", None), "l@example.org"
    ),
    "auth.group": lambda: Edit(
        Group.objects.create(name="night"), ("name", "day"),
        ("permissions", [str(Permission.objects.order_by("id")[0].id)]), "dusk",
    ),
}  # fmt: skip


@pytest.fixture
def bea():
    return browser(person("bea", is_staff=True, is_superuser=True))


@pytest.fixture
def ada():
    return browser(person("ada", is_staff=True, is_superuser=True))


def address_of(row, view="change"):
    return f"/admin/{row._meta.app_label}/{row._meta.model_name}/{row.pk}/{view}/"


def form_of(response):
    forms = page(response).all('form[method="post"]')
    return next(form for form in forms if form.attributes.get("id") != "logout-form")


def opened(client, address):
    return fields_of(form_of(client.get(address)))


def typed(form, **changes):
    """Return a form with other values; None takes a tick away."""
    fields = {**form, **changes}
    return {name: value for name, value in fields.items() if value is not None}


def shown_by(client, address, name):
    return opened(client, address).get(name)


def errors_of(response):
    return " ".join(page(response).texts(".errorlist"))


def as_list(value):
    return value if isinstance(value, list) or value is None else [value]


def test_each_model_that_can_be_changed_is_tried():
    request = RequestFactory().get("/")
    request.user = person("root", is_staff=True, is_superuser=True)
    changeable = set()
    for model, its_admin in admin.site._registry.items():
        if its_admin.has_change_permission(request):
            form = its_admin.get_form(request, model(), change=True)
            if set(form.base_fields) - {"reason"}:
                changeable.add(model._meta.label_lower)
            for inline in its_admin.get_inline_instances(request):
                assert not inline.has_change_permission(request), "to be tried here, too"
    assert changeable == set(EDITS)


@pytest.mark.parametrize("label", EDITS)
def test_two_people_change_different_fields(ada, bea, label):
    edit = EDITS[label]()
    address = address_of(edit.row)
    hers, his = opened(ada, address), opened(bea, address)
    assert bea.post(address, typed(his, **dict([edit.first]))).status_code == 302
    answer = ada.post(address, typed(hers, **dict([edit.second])))
    assert answer.status_code == 302, errors_of(answer)
    name, value = edit.first
    assert shown_by(ada, address, name) == as_list(value)
    name, value = edit.second
    if name != "reason":
        assert shown_by(ada, address, name) == as_list(value)


@pytest.mark.parametrize("label", EDITS)
def test_two_people_change_one_field(ada, bea, label):
    edit = EDITS[label]()
    address = address_of(edit.row)
    name, value = edit.first
    hers, his = opened(ada, address), opened(bea, address)
    assert bea.post(address, typed(his, **{name: value})).status_code == 302
    refused = ada.post(address, typed(hers, **{name: edit.other, **dict([edit.second])}))
    assert refused.status_code == 200
    assert f"to “{value}”" in errors_of(refused)
    assert f"You entered “{edit.other}”" in errors_of(refused)
    assert shown_by(ada, address, name) == [value]
    again = fields_of(form_of(refused))
    assert again[name] == [edit.other]
    assert again.get(edit.second[0]) == as_list(edit.second[1])
    answer = ada.post(address, again)
    assert answer.status_code == 302, errors_of(answer)
    assert float_or_text(shown_by(ada, address, name)[0]) == float_or_text(edit.other)


def float_or_text(text):
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.parametrize("label", EDITS)
def test_untouched_form_says_that_nothing_changed(ada, label):
    edit = EDITS[label]()
    address = address_of(edit.row)
    assert ada.post(address, opened(ada, address)).status_code == 302
    assert LogEntry.objects.latest("id").get_change_message() == "No fields changed."


@pytest.mark.parametrize("label", EDITS)
def test_form_is_saved_to_a_locked_row(ada, label):
    edit = EDITS[label]()
    form = opened(ada, address_of(edit.row))
    with CaptureQueriesContext(connection) as queries:
        ada.post(address_of(edit.row), form)
    table = f'FOR UPDATE OF "{edit.row._meta.db_table}"'
    assert any(table in query["sql"] for query in queries)


def test_dismissed_account_stays_dismissed(ada, bea):
    lea = person("lea", is_staff=True)
    lea.groups.add(Group.objects.get(name="lead"))
    address = address_of(lea)
    hers, his = opened(ada, address), opened(bea, address)
    dismissed = typed(his, is_active=None, is_staff=None, groups=None)
    assert bea.post(address, dismissed).status_code == 302
    assert ada.post(address, typed(hers, email="lea@example.org")).status_code == 302
    lea.refresh_from_db()
    assert (lea.is_active, lea.is_staff, lea.email) == (False, False, "lea@example.org")
    assert not lea.groups.exists()
    log = [(row.user.username, row.get_change_message()) for row in LogEntry.objects.order_by("id")]
    assert log == [
        ("bea", "Changed Active, Staff status and Groups."),
        ("ada", "Changed Email address."),
    ]


def test_permissions_that_both_changed_are_refused_with_what_each_did(ada, bea):
    group = Group.objects.create(name="night")
    first, second, third = Permission.objects.order_by("id")[:3]
    group.permissions.set([first])
    address = address_of(group)
    hers, his = opened(ada, address), opened(bea, address)
    bea.post(address, typed(his, permissions=[first.id, second.id]))
    refused = ada.post(address, typed(hers, permissions=[third.id]))
    text = errors_of(refused)
    assert f"added {_label(second)}. You chose" in text
    assert f"added {_label(third)}; removed {_label(first)}" in text
    assert set(group.permissions.all()) == {first, second}
    assert fields_of(form_of(refused))["permissions"] == [str(third.id)]


def _label(permission):
    from sasweb.admin import Powers

    return Powers.label_from_instance(None, permission)


def test_list_keeps_what_a_colleague_saved(ada, bea):
    products(3)
    address = "/admin/orders/product/"
    hers, his = opened(ada, address), opened(bea, address)
    assert (
        bea.post(address, typed(his, **{"form-0-stock": "none", "_save": "Save"})).status_code
        == 302
    )
    assert (
        ada.post(address, typed(hers, **{"form-2-position": "9", "_save": "Save"})).status_code
        == 302
    )
    stocks = Product.objects.order_by("sku").values_list("stock", "position")
    assert list(stocks) == [("none", 0), ("plenty", 1), ("plenty", 9)]
    assert LogEntry.objects.count() == 2


def test_list_refuses_what_both_changed_and_shows_each_row_beside_its_form(ada, bea):
    products(3)
    address = "/admin/orders/product/"
    hers, his = opened(ada, address), opened(bea, address)
    bea.post(address, typed(his, **{"form-0-position": "50", "_save": "Save"}))
    changes = {"form-0-position": "60", "form-1-stock": "few", "_save": "Save"}
    refused = ada.post(address, typed(hers, **changes))
    assert refused.status_code == 200
    assert "to “50”. You entered “60”" in errors_of(refused)
    assert set(Product.objects.values_list("stock", flat=True)) == {"plenty"}
    again = fields_of(form_of(refused))
    for row in page(refused).only("#result_list").only("tbody").all("tr"):
        number = row.only("select")["name"].split("-")[1]
        assert again[f"form-{number}-sku"] == [row.only("th").text.replace("Product ", "sku-")]
    assert again["form-0-position"] == ["60"]
    assert ada.post(address, {**again, "_save": "Save"}).status_code == 302
    assert Product.objects.get(sku="sku-0").position == 60
    assert Product.objects.get(sku="sku-1").stock == "few"


def test_form_that_was_refused_for_an_error_still_knows_what_it_showed(ada, bea):
    row = product()
    address = address_of(row)
    hers, his = opened(ada, address), opened(bea, address)
    wrong = ada.post(address, typed(hers, price="0", summary="Better."))
    assert "equal to 0.01" in errors_of(wrong)
    bea.post(address, typed(his, name="Tea", active=None))
    again = fields_of(form_of(wrong))
    assert ada.post(address, typed(again, price="0.01")).status_code == 302
    row.refresh_from_db()
    assert (row.price, row.summary, row.name, row.active) == (1, "Better.", "Tea", False)


def test_page_shows_the_present_value_of_a_field_that_was_left_alone(ada, bea):
    row = product()
    address = address_of(row)
    hers, his = opened(ada, address), opened(bea, address)
    bea.post(address, typed(his, name="Tea", active=None))
    again = fields_of(form_of(ada.post(address, typed(hers, price="0"))))
    assert again["name"] == ["Tea"]
    assert "active" not in again
    assert again["price"] == ["0"]


def test_same_change_by_both_is_accepted(ada, bea):
    row = product()
    address = address_of(row)
    hers, his = opened(ada, address), opened(bea, address)
    for client, form in ((bea, his), (ada, hers)):
        assert client.post(address, typed(form, price="1050")).status_code == 302
    assert LogEntry.objects.latest("id").get_change_message() == "No fields changed."


def test_text_of_several_lines_is_not_changed_by_the_browsers_line_ends(ada):
    row = product()
    Product.objects.update(description="One.\nTwo.\r\nThree.")
    ada.post(address_of(row), typed(opened(ada, address_of(row)), price="1050"))
    row.refresh_from_db()
    assert row.description == "One.\nTwo.\r\nThree."


def test_form_without_what_it_showed_is_compared_with_the_row(ada):
    row = product()
    form = opened(ada, address_of(row))
    bare = {name: value for name, value in form.items() if not name.startswith("initial-")}
    for odd in ({}, {"initial-price": "{"}, {"initial-price": ""}):
        assert ada.post(address_of(row), {**typed(bare, price="7"), **odd}).status_code == 302
    row.refresh_from_db()
    assert row.price == 700


def test_page_has_not_the_secret(ada):
    channel = NotificationChannel.objects.create(
        name="duty", kind="webhook", address="https://example.org/x", secret="s" * 30
    )
    lea = person("lea")
    assert "s" * 30 not in ada.get(address_of(channel)).text
    assert lea.password not in ada.get(address_of(lea)).text
    refused = ada.post(address_of(channel), {"new_secret": "n" * 30, "name": ""})
    assert "n" * 30 not in refused.text


@pytest.mark.parametrize("change", [{"new_secret": "n" * 30}, {"forget_old_secret": "on"}])
def test_secret_that_a_colleague_set_is_not_replaced_unseen(ada, bea, change):
    channel = NotificationChannel.objects.create(
        name="duty", kind="webhook", address="https://example.org/x", secret="s" * 30, active=True
    )
    address = address_of(channel)
    hers, his = opened(ada, address), opened(bea, address)
    assert bea.post(address, typed(his, new_secret="b" * 30)).status_code == 302
    refused = ada.post(address, typed(hers, **change, name="them"))
    assert "Another user changed the secrets" in errors_of(refused)
    channel.refresh_from_db()
    assert (channel.secret, channel.old_secret, channel.name) == ("b" * 30, "s" * 30, "duty")
    again = typed(fields_of(form_of(refused)), **change)
    assert ada.post(address, again).status_code == 302


def test_group_that_a_user_may_not_give_stays(bea):
    ann = person("ann", is_staff=True)
    ann.groups.add(Group.objects.get(name="admin"))
    lea = person("lea", is_staff=True)
    own = Group.objects.create(name="choir")
    lea.groups.add(own, Group.objects.get(name="viewer"))
    form = opened(browser(ann), address_of(lea))
    role = str(Group.objects.get(name="operator").id)
    assert browser(ann).post(address_of(lea), typed(form, groups=[role])).status_code == 302
    assert set(lea.groups.values_list("name", flat=True)) == {"choir", "operator"}


def test_row_that_changed_is_not_deleted(ada, bea):
    weight = FairnessWeight.objects.create(key="big", weight=1)
    address = address_of(weight, "delete")
    hers = opened(ada, address)
    bea.post(address_of(weight), typed(opened(bea, address_of(weight)), weight="5"))
    answer = ada.post(address, hers, follow=True)
    assert "was changed since you opened the page" in answer.text
    assert FairnessWeight.objects.get().weight == 5
    assert ada.post(address, fields_of(form_of(answer))).status_code == 302
    assert not FairnessWeight.objects.exists()


def test_page_of_a_row_that_is_gone_says_so(ada):
    weight = FairnessWeight.objects.create(key="big", weight=1)
    change, delete = opened(ada, address_of(weight)), opened(ada, address_of(weight, "delete"))
    weight.delete()
    for view, form in (("change", change), ("delete", delete)):
        answer = ada.post(address_of(FairnessWeight(key="big"), view), form, follow=True)
        assert "Perhaps it was deleted?" in answer.text


def test_values_that_were_only_tried_are_saved_afterwards(ada):
    policy = Policy.objects.get(agent="greeter")
    address = address_of(policy)
    form = typed(opened(ada, address), failure_threshold="6")
    tried = ada.post(address, {**form, "_what_if": "Try these values"})
    again = fields_of(form_of(tried))
    assert again["failure_threshold"] == ["6"]
    assert ada.post(address, again).status_code == 302
    policy.refresh_from_db()
    assert policy.failure_threshold == 6


def test_account_that_was_changed_while_its_page_was_open_keeps_the_sign_in(ada):
    lea = person("lea")
    form = opened(ada, address_of(lea))
    User.objects.filter(id=lea.id).update(last_login="2026-01-01T12:00:00.123456Z")
    ada.post(address_of(lea), typed(form, email="lea@example.org"))
    lea.refresh_from_db()
    assert lea.last_login.microsecond == 123456


def test_list_with_a_row_that_is_gone_says_so(ada):
    products(2)
    form = opened(ada, "/admin/orders/product/")
    Product.objects.filter(sku="sku-1").delete()
    changed = typed(form, **{"form-0-position": "9", "_save": "Save"})
    answer = ada.post("/admin/orders/product/", changed, follow=True)
    assert "has been deleted since" in answer.text
    assert Product.objects.get().position == 0
