"""The second factor of staff: its set-up, its codes, its reset, and the ways around it."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import get_resolver
from django_otp.plugins.otp_static.models import StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from orchestration.applications.tokens import READ_METRICS
from orchestration.people import accounts
from orders.rate_limit import Limit
from sasweb.staff import second_factor, sessions
from sasweb.staff.door import BEHIND
from tests.support.applications import application
from tests.support.engine import in_error
from tests.support.operators import browser, person
from tests.support.page import page, query_count
from tests.support.second_factor import PASSWORD, app_of, log_in, logged_in, with_app

pytestmark = pytest.mark.django_db
CODE = "/login/code/"


@pytest.fixture
def _required(settings):
    settings.SECOND_FACTOR = True


@pytest.fixture
def ada():
    return person("ada@example.org", "operate", "resubmit", is_staff=True)


def leads_to(response):
    return response["Location"].partition("?")[0]


@pytest.mark.usefixtures("_required")
def test_first_login_leads_to_the_set_up_and_then_to_the_page(ada):
    client, answer = log_in(ada, to="/ops/tasks/?q=x", follow=True)
    assert answer.redirect_chain[-1][0].startswith("/login/set-up/?next=%2Fops%2Ftasks%2F")
    assert page(answer).only("img")["src"].startswith("data:image/svg+xml")
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    app = app_of(answer)
    wrong = client.post("/login/set-up/", {"code": "000000"})
    assert wrong.status_code == 422
    assert app_of(wrong).secret == app.secret
    assert client.get("/ops/").status_code == 302
    before = client.cookies["sessionid"].value
    done = client.post("/login/set-up/", {"code": app.code(), "next": "/ops/tasks/?q=x"})
    assert client.cookies["sessionid"].value != before
    shown = page(done)
    assert shown.only("a.primary")["href"] == "/ops/tasks/?q=x"
    codes = shown.only("[data-recovery-codes]").texts("code")
    assert len(set(codes)) == second_factor.CODES
    stored = set(StaticToken.objects.values_list("token", flat=True))
    assert len(stored) == len(codes)
    assert not stored & {code.replace("-", "") for code in codes}
    assert client.get("/ops/").status_code == 200
    assert client.get("/admin/").status_code == 200


def test_code_is_asked_for_after_the_password_and_is_good_once(ada):
    app = with_app(ada)
    client, answer = log_in(ada, to="/ops/agents/", follow=True)
    assert answer.redirect_chain[-1][0] == "/login/code/?next=%2Fops%2Fagents%2F"
    code = app.code()
    answer = client.post(CODE, {"code": f" {code[:3]} {code[3:]}", "next": "/ops/agents/"})
    assert (answer.status_code, answer["Location"]) == (303, "/ops/agents/")
    assert client.get("/ops/agents/").status_code == 200
    other, _ = log_in(ada)
    assert other.post(CODE, {"code": code}).status_code == 422
    assert other.post(CODE, {"code": app.code()}).status_code == 303


def test_recovery_code_lets_in_once(ada):
    with_app(ada)
    first, second = second_factor.new_recovery_codes(ada)[:2]
    client, _ = log_in(ada)
    assert client.post(CODE, {"code": first.upper()}).status_code == 303
    assert client.get("/ops/").status_code == 200
    client, _ = log_in(ada)
    assert client.post(CODE, {"code": first}).status_code == 422
    assert client.post(CODE, {"code": second.replace("-", " ")}).status_code == 303
    assert second_factor.recovery_codes_left(ada) == second_factor.CODES - 2


def test_code_of_another_user_is_refused(ada):
    with_app(ada)
    bob = person("bob", "operate")
    app, codes = with_app(bob), second_factor.new_recovery_codes(bob)
    client, _ = log_in(ada)
    for code in (app.code(), codes[0], "", "9" * 32, "9" * 40, "\0", "١٢٣٤٥٦"):
        assert client.post(CODE, {"code": code}).status_code == 422
    assert client.get("/ops/").status_code == 302


@pytest.mark.usefixtures("_required")
@pytest.mark.parametrize("has_one", [True, False])
@pytest.mark.parametrize("door", ["/login/", "/account/sign-in/"])
def test_password_alone_opens_nothing(ada, has_one, door):
    if has_one:
        with_app(ada)
    client = Client()
    client.post(door, {**dict.fromkeys(("username", "email"), ada.username), "password": PASSWORD})
    step = in_error()
    act = f"/ops/steps/{step.id}/resubmit/"
    partly = {"HX-Request": "true"}
    assert client.get("/ops/").status_code == 302
    assert client.get("/ops/?seen=x", headers=partly).status_code == 401
    assert client.get(f"/ops/steps/{step.id}/row/", headers=partly).status_code == 401
    assert client.post(act, {"attempt": 1, "reason": "x"}).status_code in {302, 303}
    assert client.post(act, {"attempt": 1, "reason": "x"}, headers=partly).status_code == 401
    for address in ("/admin/", "/admin/auth/user/", "/admin/password_change/", "/admin/login/"):
        assert client.get(address, follow=True).request["PATH_INFO"].startswith("/login/")
    assert client.post("/admin/auth/user/add/", {"username": "eve"}).status_code in {302, 303}
    assert client.get("/metrics").status_code == 401
    assert leads_to(client.get("/login/second-factor/")).startswith("/login/")
    step.refresh_from_db()
    assert step.process_state == "error"


def test_shops_sign_in_opens_no_page_of_staff_with_a_second_factor():
    ada = person("ada@example.org", "operate")
    with_app(ada)
    client = Client()
    sent = {"email": "ada@example.org", "password": PASSWORD}
    assert client.post("/account/sign-in/", sent).status_code == 303
    assert client.get("/account/").status_code == 200  # as any customer
    assert leads_to(client.get("/ops/")) == "/login/"


@pytest.mark.usefixtures("_required")
def test_session_from_before_it_was_required_ends(ada):
    client = browser(ada)
    answer = client.get("/ops/tasks/")
    assert answer["Location"] == "/login/?next=%2Fops%2Ftasks%2F&ended=1"
    assert "_auth_user_id" not in client.session


@pytest.mark.usefixtures("_required")
def test_set_up_by_an_old_password_is_refused(ada, monkeypatch):
    """A browser that was left alone at the page of the set-up."""
    client, _ = log_in(ada)
    monkeypatch.setattr(sessions, "FRESH_S", 0)
    assert leads_to(client.get("/login/set-up/")) == "/login/"
    assert not TOTPDevice.objects.exists()


def test_customers_are_asked_for_no_second_factor(settings):
    settings.SECOND_FACTOR = True
    client = browser(person("eve@example.org"))
    assert client.get("/account/").status_code == 200
    assert client.get("/ops/").status_code == 403


@pytest.mark.usefixtures("_required")
def test_tokens_of_applications_need_none():
    _, token = application("prometheus", READ_METRICS)
    assert Client().get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_tries_are_limited_by_account_over_all_addresses(ada, monkeypatch):
    monkeypatch.setattr(second_factor, "TRIES", Limit("second-factor", most=4, seconds=600))
    app = with_app(ada)
    answers = []
    for number in range(6):
        client, _ = log_in(ada, client=Client(REMOTE_ADDR=f"2001:db8:0:{number:x}::1"))
        answers.append(client.post(CODE, {"code": "000000"}).status_code)
    assert answers == [422] * 4 + [429] * 2
    right = client.post(CODE, {"code": app.code()})
    assert (right.status_code, right["Retry-After"]) == (429, "600")
    assert client.get("/ops/").status_code == 302


def test_wrong_codes_count_as_wrong_passwords_do(ada, monkeypatch):
    monkeypatch.setattr(second_factor, "TRIES", Limit("second-factor", most=99, seconds=600))
    with_app(ada)
    client, _ = log_in(ada)
    answers = [client.post(CODE, {"code": "000000"}).status_code for _ in range(11)]
    assert answers == [422] * 9 + [429] * 2
    assert log_in(ada)[1].status_code == 429


def admin_of_users():
    user = person("root", is_staff=True)
    user.groups.add(Group.objects.get(name="admin"))
    return user


def test_administrator_resets_it_and_sessions_end(ada):
    app = with_app(ada)
    second_factor.new_recovery_codes(ada)
    hers = logged_in(ada, app)
    assert hers.get("/ops/").status_code == 200
    root = browser(admin_of_users())
    address = f"/admin/auth/user/{ada.id}/second-factor/"
    assert address in root.get(f"/admin/auth/user/{ada.id}/change/").text
    assert root.get(address).status_code == 200
    assert TOTPDevice.objects.exists()  # a look changes nothing
    assert root.post(address).status_code == 302
    assert not TOTPDevice.objects.exists()
    assert not StaticToken.objects.exists()
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.user.username) == (str(ada.id), "root")
    assert "econd factor" in entry.get_change_message()
    assert entry.get_change_message() in root.get("/ops/audit/").text
    assert leads_to(hers.get("/ops/")) == "/login/"
    assert hers.get("/account/").status_code == 302
    assert root.get(address).status_code == 403  # there is nothing to reset
    # who reset it could set up their own
    assert accounts.one_person(ada.id, User.objects.get(username="root").id)


def test_second_factor_is_not_reset_by_oneself_or_without_the_right(ada):
    root = admin_of_users()
    app = with_app(root)
    own = f"/admin/auth/user/{root.id}/second-factor/"
    client = logged_in(root, app)
    assert own not in client.get(f"/admin/auth/user/{root.id}/change/").text
    assert client.post(own).status_code == 403
    boss = person("boss", is_staff=True, is_superuser=True)
    with_app(boss)
    assert client.post(f"/admin/auth/user/{boss.id}/second-factor/").status_code == 403
    assert browser(ada).post(own).status_code == 403
    assert client.post("/admin/auth/user/999999/second-factor/").status_code == 404
    assert TOTPDevice.objects.count() == 2


def test_command_resets_it_for_the_last_administrator(ada, capsys):
    with pytest.raises(CommandError):
        call_command("reset_second_factor", "ada@example.org")
    with pytest.raises(CommandError):
        call_command("reset_second_factor", "eve")
    with_app(ada)
    call_command("reset_second_factor", "ada@example.org")
    assert not TOTPDevice.objects.exists()
    assert LogEntry.objects.get().object_id == str(ada.id)


def test_user_turns_it_on_and_off_where_it_is_not_required(ada):
    client, answer = log_in(ada, follow=True)
    assert answer.status_code == 200
    assert page(client.get("/login/second-factor/")).only('[data-factor="off"]')
    app = app_of(client.get("/login/set-up/"))
    assert client.post("/login/set-up/", {"code": app.code()}).status_code == 200
    own = page(client.get("/login/second-factor/"))
    assert re.search(r"\b10\b", own.only('[data-factor="on"]').text)
    sent = {"password": "wrong", "act": "remove"}
    assert client.post("/login/second-factor/", sent).status_code == 422
    codes = client.post("/login/second-factor/", {"password": PASSWORD, "act": "codes"})
    assert len(page(codes).only("[data-recovery-codes]").texts("code")) == second_factor.CODES
    sent = {"password": PASSWORD, "act": "remove"}
    assert client.post("/login/second-factor/", sent).status_code == 303
    assert not TOTPDevice.objects.exists()
    assert client.get("/ops/").status_code == 200
    history = LogEntry.objects.filter(object_id=str(ada.id), user=ada)
    assert history.count() == 3


def test_required_second_factor_is_not_turned_off_but_moved_to_another_device(ada, settings):
    settings.SECOND_FACTOR = True
    old = with_app(ada)
    client = logged_in(ada, old)
    other = logged_in(ada, old)
    client.post("/login/second-factor/", {"password": PASSWORD, "act": "remove"})
    assert TOTPDevice.objects.exists()
    new = app_of(client.get("/login/set-up/"))
    assert client.post("/login/set-up/", {"code": new.code()}).status_code == 422  # no password
    sent = {"code": new.code(), "password": PASSWORD}
    assert client.post("/login/set-up/", sent).status_code == 200
    assert client.get("/ops/").status_code == 200
    assert leads_to(other.get("/ops/")) == "/login/"
    half, _ = log_in(ada)
    assert half.get("/login/set-up/")["Location"].startswith("/login/code/")
    assert half.post("/login/set-up/", {"code": new.code()})["Location"].startswith(CODE)


def test_next_leads_to_no_other_site(ada):
    app = with_app(ada)
    client, _ = log_in(ada)
    answer = client.post(CODE, {"code": app.code(), "next": "https://evil.example/"})
    assert answer["Location"] == "/ops/"


def test_each_page_of_staff_costs_one_query_more(ada):
    client = browser(ada)
    plain = query_count(client, "/ops/runbook/")
    app = with_app(ada)
    assert query_count(logged_in(ada, app), "/ops/runbook/") == plain


def test_each_address_is_behind_the_door_or_open_to_everyone():
    """A new one has to be put on one side; `/ops/` and `/admin/` are behind it as a whole."""
    routes = {f"/{pattern.pattern}" for pattern in get_resolver().url_patterns}
    unguarded = {route for route in routes if not route.startswith(BEHIND)}
    assert unguarded == {"/", "/api/", "/hooks/", "/language/", "/livez", "/logout/", "/readyz"}


def test_secrets_are_in_no_admin_page(ada):
    boss = browser(person("boss", is_staff=True, is_superuser=True))
    with_app(ada)
    assert "otp" not in boss.get("/admin/").text
    assert boss.get("/admin/otp_totp/totpdevice/").status_code == 404
    assert "second factor" in boss.get("/admin/auth/user/").text.lower()
