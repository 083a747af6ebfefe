"""Passkeys in a browser, whose authenticator is virtual; and the pages around them."""

import re

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from playwright.sync_api import expect

from tests.browser.people import check, type_password, visiting
from tests.support.customers import PASSWORD, confirmed
from tests.support.operators import person
from tests.support.second_factor import App

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
EMAIL = "ada@example.org"


@pytest.fixture
def visit(chromium, transactional_db, live_server):
    with visiting(chromium, live_server.url) as visit:
        yield visit


def authenticator(page, *, knows_its_owner=True) -> None:
    """Put an authenticator into a browser."""
    chrome = page.context.new_cdp_session(page)
    chrome.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True,
        "hasUserVerification": True, "isUserVerified": knows_its_owner,
        "automaticPresenceSimulation": True,
    }  # fmt: skip
    chrome.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def sign_in(page):
    page.goto("/account/sign-in/")
    page.fill("[name=email]", EMAIL)
    page.fill("[name=password]", PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def add_passkey(page, name="Phone"):
    page.get_by_role("link", name="Add a passkey").click()
    page.fill("[name=name]", name)
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.locator("[data-recovery-codes] li")).to_have_count(10)


def test_customer_adds_a_passkey_signs_in_with_it_and_removes_it(visit):
    confirmed(EMAIL)
    page = visit("/account/sign-in/")
    authenticator(page)
    check(page)
    sign_in(page)
    page.wait_for_url("**/account/")
    page.get_by_role("link", name="Second factor").click()
    expect(page.locator("[data-factor=off]")).to_be_visible()
    check(page)
    page.get_by_role("link", name="Add a passkey").click()
    check(page)
    page.go_back()
    add_passkey(page)
    check(page)
    page.get_by_role("link", name="Go on").click()
    expect(page.locator("[data-factor=on]")).to_be_visible()
    expect(page.locator("[data-passkeys] li")).to_contain_text("Phone")
    check(page)

    page.goto("/account/")
    page.get_by_role("button", name="Sign out").click()
    page.goto("/account/sign-in/?next=/account/address/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(re.compile(r"^http://[^/]+/account/address/$"))

    page.goto("/account/")
    page.get_by_role("button", name="Sign out").click()
    User.objects.update(is_active=False)
    page.goto("/account/sign-in/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.locator("#messages .error")).to_be_visible()
    User.objects.update(is_active=True)
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(re.compile(r"^http://[^/]+/account/$"))

    page.goto("/account/second-factor/")
    page.locator("[data-passkeys]").get_by_role("link", name="Remove").click()
    check(page)
    page.get_by_role("button", name="Remove it").click()
    expect(page.locator("[data-factor=off]")).to_be_visible()
    assert not Authenticator.objects.exists()
    assert page.problems == []


def test_passkey_is_the_second_factor_after_a_password(visit, settings):
    settings.SECOND_FACTOR = True
    person("ada", "operate")
    page = visit("/ops/agents/")
    authenticator(page)
    check(page)
    type_password(page, "ada")
    page.wait_for_url("**/login/second-factor/**")
    check(page)
    add_passkey(page)
    page.get_by_role("link", name="Go on").click()
    page.wait_for_url(re.compile(r"^http://[^/]+/ops/agents/$"))
    page.get_by_role("button", name=re.compile("Log out")).click()
    page.goto("/ops/agents/")
    type_password(page, "ada")
    page.wait_for_url("**/login/code/**")
    check(page)
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(re.compile(r"^http://[^/]+/ops/agents/$"))

    page.get_by_role("button", name=re.compile("Log out")).click()
    page.goto("/login/?next=/ops/system/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(re.compile(r"^http://[^/]+/ops/system/$"))

    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 0
    page.goto("/login/second-factor/passkey/")
    page.wait_for_url("**/login/again/**")
    check(page)
    page.get_by_role("link", name="Use a security key").click()
    check(page)
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 600
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(re.compile(r"^http://[^/]+/login/second-factor/passkey/$"))
    assert page.problems == []


def test_device_that_does_not_know_its_owner_makes_no_passkey(visit):
    """It would be good for who has found it."""
    confirmed(EMAIL)
    page = visit("/account/sign-in/")
    authenticator(page, knows_its_owner=False)
    sign_in(page)
    page.wait_for_url("**/account/")
    page.goto("/account/second-factor/passkey/")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.locator("[data-passkey-failed]")).to_be_visible()
    check(page)
    assert not Authenticator.objects.exists()


def test_pages_of_codes_and_sessions_have_no_barriers(visit):
    confirmed(EMAIL)
    page = visit("/account/sign-in/")
    sign_in(page)
    page.wait_for_url("**/account/")
    check(page)
    page.goto("/account/second-factor/app/")
    check(page)
    app = App.typed(page.locator("[data-secret]").inner_text())
    page.fill("[name=code]", "000000")
    page.get_by_role("button", name="Turn it on").click()
    expect(page.locator(".errors")).to_be_focused()
    page.fill("[name=code]", app.code())
    page.get_by_role("button", name="Turn it on").click()
    expect(page.locator("[data-recovery-codes] li")).to_have_count(10)
    for path in ("codes/", "codes/new/", "app/remove/"):
        page.goto(f"/account/second-factor/{path}")
        check(page)
    page.goto("/account/sessions/")
    expect(page.locator("[data-session=this]")).to_be_visible()
    check(page)
    page.goto("/account/check-mail/")
    check(page)
    page.goto("/account/confirm/x/")
    check(page)
