"""The second factor of customers: set up by those who want one, and asked for from then on."""

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.test import Client

from orders.rate_limit import Limit
from sasweb.accounts import pages
from tests.support.customers import confirmed, customer
from tests.support.page import page
from tests.support.second_factor import app_of, with_app, with_recovery_codes

pytestmark = pytest.mark.django_db
EMAIL, PASSWORD = "ada@example.org", "correct horse"
OWN, APP = "/account/second-factor/", "/account/second-factor/app/"


def sign_in(client=None, to=""):
    client = client or Client()
    sent = {"email": EMAIL, "password": PASSWORD, "next": to}
    return client, client.post("/account/sign-in/", sent)


def test_customer_sets_up_an_app_and_is_asked_for_its_code():
    client = customer()
    assert page(client.get(OWN)).only('[data-factor="off"]')
    app = app_of(client.get(APP))
    shown = client.post(APP, {"code": app.code()}, follow=True)
    codes = page(shown).only("[data-recovery-codes]").texts("code")
    assert page(client.get(OWN)).only('[data-factor="on"]')
    other, asked = sign_in(to="/checkout/")
    assert asked["Location"] == "/account/code/"
    assert other.get("/account/").status_code == 302
    assert page(other.get("/account/code/")).only('[name="code"]')
    assert other.post("/account/code/", {"code": "000000"}).status_code == 422
    entered = other.post("/account/code/", {"code": app.code()})
    assert (entered.status_code, entered["Location"]) == (303, "/checkout/")
    third, _ = sign_in()
    assert third.post("/account/code/", {"code": codes[0]})["Location"] == "/account/"
    assert third.get("/account/").status_code == 200


@pytest.mark.parametrize(
    "address", [OWN, APP, f"{OWN}passkey/", f"{OWN}codes/", "/account/sessions/"]
)
def test_pages_need_a_sign_in(address):
    assert Client().get(address)["Location"].startswith("/account/sign-in/?next=")


def test_pages_are_in_the_customers_language_and_the_shops_dress():
    client = customer(client=Client(headers={"Accept-Language": "de"}))
    for address in (OWN, APP, f"{OWN}passkey/", "/account/sessions/"):
        shown = client.get(address)
        assert '<html lang="de">' in shown.text
        assert "Operations" not in shown.text
        assert "no-store" in shown["Cache-Control"]
        assert "unsafe" not in shown["Content-Security-Policy"]


def test_password_is_asked_for_again_before_a_change(settings):
    client = customer()
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 0
    asked = client.get(APP)
    assert asked["Location"] == "/account/again/?next=%2Faccount%2Fsecond-factor%2Fapp%2F"
    assert page(client.get(asked["Location"])).only('[name="password"]')
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 600
    sent = {"password": PASSWORD, "next": APP}
    assert client.post("/account/again/", sent)["Location"] == APP


def test_wrong_passwords_before_a_change_are_limited(monkeypatch):
    client = customer()
    answers = [
        client.post("/account/again/", {"password": "wrong"}).status_code
        for _ in range(pages.PASSWORDS.most + 2)
    ]
    # as at a sign-in, the name is locked by then
    assert answers == [422] * 9 + [429] * 3


def test_code_is_another_way_to_confirm_a_change():
    confirmed(EMAIL)
    user = User.objects.get()
    app, codes = with_app(user), with_recovery_codes(user)
    client, _ = sign_in()
    client.post("/account/code/", {"code": app.code()})
    again = client.get("/account/again/")
    assert page(again).only('a[href="/account/again/code/"]')
    assert client.post("/account/again/code/", {"code": "000000"}).status_code == 422
    sent = {"code": codes[3], "next": OWN}
    assert client.post("/account/again/code/", sent)["Location"] == OWN


@pytest.mark.parametrize(
    "sent",
    [{}, {"credential": ""}, {"credential": "x"}, {"credential": "{}"}, {"credential": "[1]"},
     {"credential": '{"response": {"userHandle": "MQ"}}'}, {"credential": "null"}],
)  # fmt: skip
def test_forged_passkey_lets_no_one_in(sent):
    person = confirmed(EMAIL)
    client = Client()
    options = client.get("/account/passkey/", headers={"Accept": "application/json"}).json()
    assert options["request_options"]["publicKey"]["userVerification"] == "required"
    assert client.post("/account/passkey/", sent)["Location"] == "/account/sign-in/"
    with_app(person)
    client, _ = sign_in()
    assert client.post("/account/code/", sent).status_code == 422
    assert client.get("/account/").status_code == 302
    mine = customer("eve@example.org")
    assert mine.post(f"{OWN}passkey/", sent).status_code == 422
    assert not Authenticator.objects.filter(type="webauthn").exists()


def test_second_factor_of_another_account_is_not_removed():
    person = confirmed(EMAIL)
    row = Authenticator.objects.create(
        user=person, type="webauthn", data={"name": "x", "credential": {}}
    )
    eve = customer("eve@example.org")
    assert eve.post(f"{OWN}passkey/{row.pk}/remove/").status_code == 404
    assert eve.post(f"{APP}remove/").status_code == 404
    assert Authenticator.objects.filter(pk=row.pk).exists()


def test_session_from_before_the_factor_changes_nothing_by_the_password():
    """Its cookie may be stolen, and the password known: that is what the factor is for."""
    old = customer()
    user = User.objects.get()
    app = with_app(user)
    for address in (APP, f"{APP}remove/", f"{OWN}codes/new/"):
        asked = old.post(address)
        assert asked["Location"].startswith("/account/again/code/?next=")
    assert old.post("/account/again/", {"password": PASSWORD})["Location"] == "/account/again/code/"
    assert old.post(f"{APP}remove/").status_code == 302
    assert Authenticator.objects.exists()
    sent = {"code": app.code(), "next": OWN}
    assert old.post("/account/again/code/", sent)["Location"] == OWN
    assert old.post(f"{APP}remove/")["Location"] == OWN
    assert not Authenticator.objects.exists()


def test_change_of_factors_ends_the_other_sessions():
    mine, other = customer(), sign_in()[0]
    app = app_of(mine.get(APP))
    mine.post(APP, {"code": app.code()})
    assert mine.get("/account/").status_code == 200
    assert other.get("/account/").status_code == 302


def test_passkeys_are_limited_by_address(monkeypatch):
    monkeypatch.setattr(pages, "PASSKEYS", Limit("passkey", most=2, seconds=60))
    client = Client()
    answers = [
        client.get("/account/passkey/", headers={"Accept": "application/json"}) for _ in range(3)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 303]
    assert client.post("/account/passkey/", {})["Location"] == "/account/sign-in/"
