"""People see where they are signed in, and end what they do not know."""

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.test import Client

from tests.support.customers import PASSWORD, customer
from tests.support.operators import person
from tests.support.page import page, query_count
from tests.support.second_factor import log_in

pytestmark = pytest.mark.django_db
EMAIL, PAGE = "ada@example.org", "/account/sessions/"


def sign_in(agent="Firefox"):
    client = Client(headers={"User-Agent": agent})
    sent = {"email": EMAIL, "password": PASSWORD}
    assert client.post("/account/sign-in/", sent).status_code == 303
    return client


def listed(client):
    """Return the sessions as the page shows them: the own one, and the ids of others."""
    return [row["data-session"] for row in page(client.get(PAGE)).all("[data-session]")]


def signed_in(client):
    return client.get("/account/").status_code == 200


def test_sessions_are_listed_and_each_can_be_ended():
    mine = customer()
    phone, tablet = sign_in("A phone"), sign_in("A tablet")
    assert "A phone" in mine.get(PAGE).text
    last, middle, own = listed(mine)
    assert own == "this"
    assert mine.post(PAGE, {"session": middle}).status_code == 303
    assert [signed_in(client) for client in (mine, phone, tablet)] == [True, False, True]
    assert listed(mine) == [last, "this"]


def test_all_other_sessions_end_at_once():
    mine, others = customer(), [sign_in() for _ in range(3)]
    assert mine.post(PAGE, {"session": "others"}).status_code == 303
    assert [signed_in(client) for client in (mine, *others)] == [True, False, False, False]


@pytest.mark.parametrize("session", ["", "x", "0", "9" * 18, "9" * 40, "-1", "²"])
def test_unknown_session_is_refused(session):
    mine, other = customer(), sign_in()
    assert mine.post(PAGE, {"session": session}).status_code == 422
    assert signed_in(other)


def test_session_of_another_account_is_not_ended():
    mine, eve = customer(), customer("eve@example.org")
    row = UserSession.objects.get(user__username=EMAIL)
    assert eve.post(PAGE, {"session": row.pk}).status_code == 422
    assert signed_in(mine)


def test_table_has_nothing_that_would_do_as_a_cookie():
    client = customer()
    key = client.cookies["sessionid"].value
    stored = UserSession.objects.get().session_key
    assert key not in stored
    forged = Client()
    forged.cookies["sessionid"] = stored
    assert not signed_in(forged)


def test_ended_sessions_are_listed_no_more():
    mine, other = customer(), sign_in()
    other.post("/logout/")
    assert listed(mine) == ["this"]
    assert UserSession.objects.count() == 1


def test_new_password_ends_the_other_sessions():
    mine, other = customer(), sign_in()
    sent = {"old": PASSWORD, "password": "battery staple", "again": "battery staple"}
    assert mine.post("/account/password/", sent).status_code == 303
    assert not signed_in(other)
    assert listed(mine) == ["this"]
    assert Session.objects.count() == 1


def test_staff_end_their_sessions_at_their_own_address():
    ada = person("ada", "operate")
    here, _ = log_in(ada)
    there, _ = log_in(ada)
    shown = page(here.get("/login/sessions/"))
    assert len(shown.all("[data-session]")) == 2
    assert here.post("/login/sessions/", {"session": "others"})["Location"] == "/login/sessions/"
    assert there.get("/ops/").status_code == 302
    assert here.get("/ops/").status_code == 200


def test_page_costs_the_same_with_many_sessions():
    mine = customer()
    mine.get(PAGE)  # it gives the cookie of a visitor
    cost = query_count(mine, PAGE)
    for _ in range(4):
        sign_in()
    assert query_count(mine, PAGE) == cost
