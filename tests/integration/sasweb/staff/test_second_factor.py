"""The second factor of staff: its set-up, its codes, its reset, and the ways around it."""

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import get_resolver

from orchestration.applications.tokens import READ_METRICS
from orchestration.people import accounts
from orders.rate_limit import Limit
from sasweb.accounts import second_factor
from sasweb.staff import sessions
from sasweb.staff.door import BEHIND
from tests.support.applications import application
from tests.support.engine import in_error
from tests.support.operators import browser, person
from tests.support.page import page, query_count
from tests.support.second_factor import (
    PASSWORD,
    SET_UP,
    app_of,
    log_in,
    logged_in,
    with_app,
    with_recovery_codes,
)

pytestmark = pytest.mark.django_db
CODE = "/login/code/"
CODES = 10


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
    assert answer.redirect_chain[-1][0].startswith("/login/second-factor/?next=%2Fops%2Ftasks%2F")
    address = page(answer).only(f'a[href^="{SET_UP}"]')["href"]
    answer = client.get(address)
    assert page(answer).only("img")["src"].startswith("data:image/svg+xml")
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    app = app_of(answer)
    wrong = client.post(SET_UP, {"code": "000000"})
    assert wrong.status_code == 422
    assert app_of(wrong).secret == app.secret
    assert client.get("/ops/").status_code == 302
    before = client.cookies["sessionid"].value
    done = client.post(SET_UP, {"code": app.code(), "next": "/ops/tasks/?q=x"}, follow=True)
    assert client.cookies["sessionid"].value != before
    shown = page(done)
    assert shown.only("a.primary")["href"] == "/ops/tasks/?q=x"
    codes = shown.only("[data-recovery-codes]").texts("code")
    assert len(set(codes)) == CODES
    stored = str(Authenticator.objects.get(type="recovery_codes").data)
    assert "seed" not in stored
    assert not [code for code in codes if code in stored or code.replace("-", "") in stored]
    assert client.get("/ops/").status_code == 200
    assert client.get("/admin/").status_code == 200


def test_code_is_asked_for_after_the_password_and_is_good_once(ada):
    app = with_app(ada)
    client, answer = log_in(ada, to="/ops/agents/", follow=True)
    assert answer.redirect_chain[-1][0] == "/login/code/"
    code = app.code()
    answer = client.post(CODE, {"code": f" {code[:3]} {code[3:]}", "next": "/ops/agents/"})
    assert (answer.status_code, answer["Location"]) == (303, "/ops/agents/")
    assert client.get("/ops/agents/").status_code == 200
    other, _ = log_in(ada)
    assert other.post(CODE, {"code": code}).status_code == 422
    assert other.post(CODE, {"code": app.code()}).status_code == 303


def test_recovery_code_lets_in_once(ada):
    with_app(ada)
    first, second = with_recovery_codes(ada)[:2]
    client, _ = log_in(ada)
    assert client.post(CODE, {"code": first.upper()}).status_code == 303
    assert client.get("/ops/").status_code == 200
    client, _ = log_in(ada)
    assert client.post(CODE, {"code": first}).status_code == 422
    assert client.post(CODE, {"code": second.replace("-", " ")}).status_code == 303
    assert second_factor.recovery_codes_left(ada) == CODES - 2


def test_code_of_another_user_is_refused(ada):
    with_app(ada)
    bob = person("bob", "operate")
    app, codes = with_app(bob), with_recovery_codes(bob)
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
    own = client.get("/login/second-factor/")
    if has_one:
        assert leads_to(own).startswith("/login/")
    else:  # to set one up
        assert page(own).only('[data-factor="off"]')
    step.refresh_from_db()
    assert step.process_state == "error"


def test_shops_sign_in_asks_for_the_second_factor_too():
    ada = person("ada@example.org", "operate")
    app = with_app(ada)
    client = Client()
    sent = {"email": "ada@example.org", "password": PASSWORD}
    assert leads_to(client.post("/account/sign-in/", sent)) == "/account/code/"
    assert leads_to(client.get("/account/")) == "/account/sign-in/"
    assert leads_to(client.get("/ops/")) == "/login/code/"
    assert client.post("/account/code/", {"code": app.code()})["Location"] == "/account/"
    assert client.get("/account/").status_code == 200
    assert client.get("/ops/").status_code == 200


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
    assert leads_to(client.get(SET_UP)) == "/login/"
    assert not Authenticator.objects.exists()


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
    with_recovery_codes(ada)
    hers = logged_in(ada, app)
    assert hers.get("/ops/").status_code == 200
    root = browser(admin_of_users())
    address = f"/admin/auth/user/{ada.id}/second-factor/"
    assert address in root.get(f"/admin/auth/user/{ada.id}/change/").text
    assert root.get(address).status_code == 200
    assert Authenticator.objects.exists()  # a look changes nothing
    assert root.post(address).status_code == 302
    assert not Authenticator.objects.exists()
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
    assert Authenticator.objects.count() == 2


def test_command_resets_it_for_the_last_administrator(ada, capsys):
    with pytest.raises(CommandError):
        call_command("reset_second_factor", "ada@example.org")
    with pytest.raises(CommandError):
        call_command("reset_second_factor", "eve")
    with_app(ada)
    call_command("reset_second_factor", "ada@example.org")
    assert not Authenticator.objects.exists()
    assert LogEntry.objects.get().object_id == str(ada.id)


@pytest.fixture
def _long_ago(settings):
    """Have the password asked for again before anything changes."""
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 0


@pytest.fixture
def again(settings):
    """Call it to type the password again, after which changes are good for a while."""

    def again(client, password=PASSWORD, to="/login/second-factor/"):
        settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 600
        return client.post("/login/again/", {"password": password, "next": to})

    return again


def test_user_turns_it_on_and_off_where_it_is_not_required(ada, settings, again):
    client, answer = log_in(ada, follow=True)
    assert answer.status_code == 200
    assert page(client.get("/login/second-factor/")).only('[data-factor="off"]')
    app = app_of(client.get(SET_UP))
    assert client.post(SET_UP, {"code": app.code()}, follow=True).status_code == 200
    own = page(client.get("/login/second-factor/"))
    assert own.only('[data-factor="on"]')
    assert own.only("[data-left]")["data-left"] == "10"
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 0
    new, off = "/login/second-factor/codes/new/", f"{SET_UP}remove/"
    for address in (SET_UP, new, off):
        asked = client.post(address)
        assert asked["Location"].startswith("/login/again/?next=%2Flogin%2Fsecond-factor%2F")
    assert client.post("/login/again/", {"password": "wrong"}).status_code == 422
    assert again(client).status_code == 302
    codes = client.post(new, follow=True)
    assert len(page(codes).only("[data-recovery-codes]").texts("code")) == CODES
    assert not page(client.get("/login/second-factor/codes/")).all("[data-recovery-codes]")
    assert client.post(off).status_code == 302
    assert not Authenticator.objects.exists()
    assert client.get("/ops/").status_code == 200
    history = LogEntry.objects.filter(object_id=str(ada.id), user=ada)
    assert history.count() == 3


def test_required_second_factor_is_not_turned_off_but_moved_to_another_device(ada, settings):
    settings.SECOND_FACTOR = True
    old = with_app(ada)
    client = logged_in(ada, old)
    other = logged_in(ada, old)
    refused = client.post(f"{SET_UP}remove/")
    assert refused.status_code == 422
    assert page(refused).only('[data-refused="last"]')
    assert Authenticator.objects.exists()
    new = app_of(client.get(SET_UP))
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 0
    assert leads_to(client.post(SET_UP, {"code": new.code()})) == "/login/again/"
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 600
    assert client.post(SET_UP, {"code": new.code()}, follow=True).status_code == 200
    assert client.get("/ops/").status_code == 200
    assert leads_to(other.get("/ops/")) == "/login/"
    half, _ = log_in(ada)
    for address in ("/login/second-factor/", SET_UP):
        assert leads_to(half.get(address)) == "/login/"
    assert leads_to(half.post(SET_UP, {"code": new.code()})) == "/login/"


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
    assert unguarded == {
        "/",
        "/account/",
        "/account/check-mail/",
        "/account/sign-in/",
        "/api/",
        "/hooks/",
        "/language/",
        "/livez",
        "/logout/",
        "/readyz",
    }


def test_secrets_are_in_no_admin_page(ada):
    boss = browser(person("boss", is_staff=True, is_superuser=True))
    with_app(ada)
    assert "authenticator" not in boss.get("/admin/").text.lower()
    for table in ("mfa/authenticator", "account/emailaddress", "usersessions/usersession"):
        assert boss.get(f"/admin/{table}/").status_code == 404
    assert "second factor" in boss.get("/admin/auth/user/").text.lower()
