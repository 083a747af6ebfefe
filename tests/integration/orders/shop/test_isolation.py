"""The shop's pages need no privilege on the engine's tables (P22, P27)."""

import re
from uuid import uuid4

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import ProgrammingError, connection, transaction
from django.test import Client

from orchestration import api
from orchestration.models import Event, Task, TaskRequest
from orders.lifecycle import returns, tracking
from orders.lifecycle.access import link
from orders.lifecycle.numbers import order_number
from orders.lifecycle.stages import STEPS
from orders.models import Exchange, Order, Throttle
from orders.models.order import OrderStatus
from orders.templatetags.shop import BADGES
from sasweb.accounts import second_factor
from sasweb.session_store import SessionStore
from tests.support.customers import customer
from tests.support.engine import staff
from tests.support.page import page
from tests.support.second_factor import app_of, with_app
from tests.support.shop import (
    answer,
    ask,
    buy,
    carry_out,
    current_stages,
    declined,
    finish_all,
    order_page,
    order_verdict,
    placed,
    poll_address,
    products,
    send,
    sold_out,
)
from tests.support.shop_role import ROLE, Visitor, in_role, make_role

pytestmark = pytest.mark.django_db
VISA = {"attempt": 1, "payment_method": "pm_card_visa"}


@pytest.fixture(autouse=True)
def _shop():
    products()
    staff()
    make_role()


@pytest.fixture
def client():
    return Visitor()


def test_role_has_no_privilege_on_engine_tables():
    allowed = "SELECT has_table_privilege(%s, %s, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')"
    models = apps.get_app_config("orchestration").get_models(include_auto_created=True)
    tables = {model._meta.db_table for model in models}
    assert len(tables) > 20
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(allowed, [ROLE, table])
            assert cursor.fetchone() == (False,), table


def test_page_runs_in_the_role(client):
    """Otherwise the tests below would show nothing."""
    refused = pytest.raises(ProgrammingError, match="permission denied")
    with in_role(), refused, transaction.atomic():
        Task.objects.count()
    assert client.get("/").status_code == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() != (ROLE,)


def test_browsing_ordering_and_polling_in_the_role(client):
    assert client.get("/").status_code == 200
    assert client.get("/products/slug-0/").status_code == 200
    order = buy(client, sku_0=2)
    assert order_verdict(client, order) == tracking.RECEIVED
    carry_out()
    assert order_verdict(client, order) == tracking.WORKING
    poll = poll_address(order_page(client, order))
    assert client.get(poll).status_code == 204
    answer(ask())
    assert current_stages(client.get(poll).text) == [STEPS["create_shipment"][1]]
    finish_all()
    assert order_verdict(client, order) == tracking.CONFIRMED
    look_up = Visitor().post(
        "/orders/find/", {"number": order_number(order), "email": "ada@example.org"}
    )
    assert look_up["Location"] == link(order)


def test_account_and_its_orders_in_the_role(client, settings):
    client.get("/")  # the addresses are loaded once, for all tests
    settings.FOR_STAFF = False  # as SERVES=shop says
    customer(client=client)
    order = placed(client)
    finish_all()
    seen = client.get("/account/").text
    assert order_number(order) in seen
    assert f'class="badge {BADGES[OrderStatus.CONFIRMED]}"' in seen
    client.post("/logout/")
    again = {"email": "ada@example.org", "password": "correct horse"}
    assert client.post("/account/sign-in/", again).status_code == 303


def test_second_factor_and_sessions_in_the_role(client, settings):
    client.get("/")
    settings.FOR_STAFF = False
    customer(client=client)
    address = "/account/second-factor/app/"
    app = app_of(client.get(address))
    shown = client.post(address, {"code": app.code()})
    assert shown["Location"] == "/account/second-factor/codes/"
    assert page(client.get(shown["Location"])).only("[data-recovery-codes]")
    assert page(client.get("/account/sessions/")).only('[data-session="this"]')
    assert client.post("/account/sessions/", {"session": "others"}).status_code == 303
    client.post("/logout/")
    sent = {"email": "ada@example.org", "password": "correct horse"}
    assert client.post("/account/sign-in/", sent)["Location"] == "/account/code/"
    assert client.post("/account/code/", {"code": app.code()}).status_code == 303
    assert client.get("/account/").status_code == 200


def test_second_factors_and_sessions_of_staff_are_out_of_reach_of_the_role():
    leader = User.objects.create_superuser("leader", "leader@example.org", "correct horse")
    with_app(leader)
    EmailAddress.objects.create(user=leader, email=leader.email, verified=True)
    UserSession.objects.create(user=leader, ip="::1", session_key="staff.x")
    with in_role():
        for model in (Authenticator, EmailAddress, UserSession):
            assert model.objects.all().delete()[0] == 0
            assert model.objects.count() == 0
        refused = pytest.raises(ProgrammingError, match="row-level security")
        with refused, transaction.atomic():
            Authenticator.objects.create(user_id=leader.pk, type="totp", data={})
    assert Authenticator.objects.count() == 1


def test_cancellation_in_the_role(client):
    order = placed(client)
    answer(ask())
    assert client.post(f"/orders/{order}/cancel/").status_code == 303
    assert order_verdict(client, order) == tracking.CANCEL_ASKED
    carry_out()
    assert order_verdict(client, order) == tracking.CANCELLING
    finish_all()
    assert order_verdict(client, order) == tracking.CANCELLED
    assert Task.objects.get(reference=str(order)).state == "undone"


FIXES = {
    "card": (declined, VISA),
    "leave-out": (sold_out, {"attempt": 1, "sku": "sku-1"}),
    "wait": (sold_out, {"attempt": 1}),
}


@pytest.mark.parametrize("what", FIXES)
def test_fix_of_a_failed_order_in_the_role(client, what):
    fails, sent = FIXES[what]
    order = fails(client)
    assert f"/orders/{order}/{what}/" in order_page(client, order)
    assert client.post(f"/orders/{order}/{what}/", sent).status_code == 303
    assert order_verdict(client, order) == tracking.PASSED_ON
    carry_out()
    assert Event.objects.filter(kind="resubmitted").count() == 1
    if what != "wait":
        finish_all()
        assert order_verdict(client, order) == tracking.CONFIRMED
    assert (Order.objects.get(id=order).waits_until is not None) == (what == "wait")


ONE_CENT = [
    ("authorize_payment", {"request": {"amount": 1}}),
    ("authorize_payment", {"request": {"amount": 1, "payment_method": "pm_card_visa"}}),
    ("authorize_payment", {"data": {"total": 1}}),
    ("authorize_payment", {"data": {"currency": "JPY"}}),
    ("authorize_payment", {"request": {"order": "another"}}),
]


@pytest.mark.parametrize(("step", "change"), ONE_CENT)
@pytest.mark.parametrize("note", [None, {"act": "card", "card": "pm_card_visa"}])
def test_role_cannot_set_a_price(client, step, change, note):
    order = declined(client)
    before = Task.objects.get(reference=str(order)).data
    with in_role():
        api.request_resubmit(
            "process_order", str(order), step, attempt=1, actor="lead", reason="looks fine",
            id=uuid4(), amendment=api.Amendment(**change), note=note,
        )  # fmt: skip
    carry_out()
    assert TaskRequest.objects.get().refused_at is not None
    assert not Event.objects.filter(kind="resubmitted").exists()
    assert Task.objects.get(reference=str(order)).data == before


CHEAPER = {"sku": "sku-0", "name": "Product 0", "unit_price": 1, "quantity": 1}


@pytest.mark.parametrize("lines", [[], [CHEAPER]])
def test_role_cannot_set_a_price_by_leaving_goods_out(client, lines):
    order = sold_out(client)
    with in_role():
        api.request_resubmit(
            "process_order", str(order), "reserve_stock", attempt=1, actor="lead", reason="",
            id=uuid4(), note={"act": "leave_out", "sku": "sku-1", "total": 1},
            amendment=api.Amendment(
                request={"lines": lines}, data={"lines": lines, "total": 1, "confirmation": {}}
            ),
        )  # fmt: skip
    carry_out()
    assert TaskRequest.objects.get().refused_at is not None
    assert not Event.objects.filter(kind="resubmitted").exists()


def test_repeated_checkout_in_the_role(client):
    client.post("/cart/add/", {"sku": "sku-0", "quantity": 1})
    token = re.search(r'name="token" value="([^"]+)"', client.get("/checkout/").text)[1]
    first, second = send(client, token), send(client, token)
    assert first["Location"] == second["Location"]
    carry_out()
    assert Order.objects.count() == 1


def test_staff_are_out_of_reach_of_the_role():
    leader = User.objects.create_superuser("leader", password="correct horse")
    browser = Client()
    browser.force_login(leader)
    assert browser.get("/ops/").status_code == 200
    keys = [browser.session.session_key]
    customer = User.objects.create_user("eve@example.org", password="correct horse")
    with_a_right = User.objects.create_user("viewer", password="correct horse")
    with_a_right.groups.add(Group.objects.create(name="any"))
    assert second_factor.TRIES.allows(str(leader.pk))
    with in_role():
        assert set(User.objects.values_list("username", flat=True)) == {customer.username}
        assert not Session.objects.filter(session_key__startswith="staff").exists()
        assert Session.objects.all().delete()[0] == 0
        assert Throttle.objects.filter(key__startswith="staff").delete()[0] == 0
    assert Throttle.objects.filter(key__startswith="staff").exists()
    assert browser.get("/ops/").status_code == 200
    assert not Session.objects.filter(session_key__in=keys).exists()


UPDATE = "UPDATE auth_user SET {} WHERE username = 'eve@example.org'"
RAISES = [
    UPDATE.format("is_staff = true"),
    UPDATE.format("is_superuser = true"),
    UPDATE.format("email = 'other@example.org'"),
    "INSERT INTO auth_user_groups (user_id, group_id) SELECT id, 1 FROM auth_user",
    (
        "INSERT INTO auth_user (username, password, first_name, last_name, email, is_active, date_joined,"
        " is_staff, is_superuser) VALUES ('x', '', '', '', '', true, now(), true, false)"
    ),
    (
        "INSERT INTO auth_user (username, password, first_name, last_name, email, is_active, date_joined,"
        " is_staff, is_superuser) VALUES ('x', '', '', '', '', true, now(), false, true)"
    ),
    "INSERT INTO django_session VALUES ('staff.x', '', now() + interval '1 day')",
    "UPDATE django_session SET session_key = 'staff.x'",
]


@pytest.mark.parametrize("statement", RAISES)
def test_role_gives_no_account_rights_of_staff(client, settings, statement):
    settings.FOR_STAFF = False  # as SERVES=shop says
    User.objects.create_user("eve@example.org", password="correct horse")
    client.post("/account/sign-in/", {"email": "eve@example.org", "password": "correct horse"})
    assert Session.objects.exists()
    refused = pytest.raises(ProgrammingError, match=r"permission denied|row-level security")
    with in_role(), refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_role_does_not_decide_what_goods_that_came_back_pay_for(client):
    order = placed(client)
    finish_all()
    row = returns.ask(order, {"sku-0": 1}, "other", id_=uuid4())
    refused = pytest.raises(ProgrammingError, match="permission denied")
    with in_role(), refused, transaction.atomic():
        Exchange.objects.create(order=uuid4(), of=row, payer_id=order, amount=1000)


def test_session_that_the_role_has_written_is_none_of_staff(client):
    """Even with the secret key, and the password's digest from before the account got its rights."""
    leader = User.objects.create_superuser("leader", password="correct horse")
    with in_role():
        session = SessionStore()
        session.update(
            {
                SESSION_KEY: str(leader.pk),
                BACKEND_SESSION_KEY: "django.contrib.auth.backends.ModelBackend",
                HASH_SESSION_KEY: leader.get_session_auth_hash(),
            }
        )
        session.save()
    browser = Client()
    browser.cookies["sessionid"] = session.session_key
    assert browser.get("/ops/").status_code == 302


def test_role_may_look_whether_the_tables_of_its_release_are_there():
    """A pod of the shop waits for the migration in its own role."""
    with in_role():
        call_command("migrate", check_unapplied=True, verbosity=0)


def test_return_claim_and_another_address_in_the_role(client, settings):
    settings.CLAIM_AFTER_DAYS = 0
    order = placed(client)
    moved = {
        "name": "Ada",
        "street": "Rue Neuve 3",
        "postcode": "1201",
        "city": "Genève",
        "country": "CH",
    }
    assert client.get(f"/orders/{order}/address/").status_code == 200
    assert client.post(f"/orders/{order}/address/", moved).status_code == 303
    carry_out()
    assert Order.objects.get(id=order).street == "Rue Neuve 3"
    finish_all()
    parcel = Order.objects.get(id=order).parcel
    other = {"parcel": "TRK0"}
    assert client.post(f"/orders/{order}/claim/", other).status_code == 409
    back = {"id_": str(uuid4()), "units-sku-0": "1", "reason": "other"}
    assert client.post(f"/orders/{order}/return/", back).status_code == 303
    assert client.post(f"/orders/{order}/claim/", {"parcel": parcel}).status_code == 409
    carry_out()
    assert Task.objects.filter(workflow="return_order").exists()
    assert "data-return" in order_page(client, order)
    query = {**back, "wish": "other"}
    assert client.get(f"/orders/{order}/exchange/", query).status_code == 200
    same = {**back, "id_": str(uuid4()), "wish": "same"}
    assert client.post(f"/orders/{order}/return/", same).status_code == 303
    lost = placed(client)
    finish_all()
    parcel = Order.objects.get(id=lost).parcel
    assert client.post(f"/orders/{lost}/claim/", {"parcel": parcel}).status_code == 303
    carry_out()
    assert Task.objects.filter(workflow="claim_parcel").exists()
