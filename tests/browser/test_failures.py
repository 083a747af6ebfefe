"""Clicks in the shop that fail say so, and what is typed stays."""

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from tests.browser.people import visiting
from tests.support.shop import placed, products

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
ADD = re.compile("^Add to cart")


@pytest.fixture
def shop(chromium, transactional_db, live_server):
    products()
    with visiting(chromium, live_server.url) as visit:
        yield visit


def failure(page, cause):
    return page.locator(f'#failure [data-cause="{cause}"]')


def stale(page):
    """Have the page's token be one from before a sign-in."""
    page.context.clear_cookies(name="csrftoken")


def test_clicks_of_a_first_visit_are_all_in_the_cart(shop):
    page = shop("/")
    page.context.clear_cookies(name="sessionid")
    buttons = (
        "[...document.querySelectorAll('form.add button')].slice(0, 3).forEach(one => one.click())"
    )
    page.evaluate(buttons)
    expect(page.locator("#cart-link .count")).to_contain_text("3")
    page.goto("/cart/")
    expect(page.locator(".basket li")).to_have_count(3)


def test_click_offline_or_with_an_old_token_says_so(shop):
    page = shop("/")
    page.context.set_offline(True)
    page.get_by_role("button", name=ADD).first.click()
    expect(failure(page, "offline")).to_be_visible()
    page.context.set_offline(False)
    page.get_by_role("button", name=ADD).first.click()
    expect(page.locator("#cart-link .count")).to_contain_text("1")
    expect(failure(page, "offline")).to_have_count(0)
    stale(page)
    page.get_by_role("button", name=ADD).first.click()
    expect(failure(page, "reload")).to_be_visible()
    expect(page.locator(".toast")).to_have_count(0)  # it would cover the sentence
    failure(page, "reload").get_by_role("link").click()
    page.get_by_role("button", name=ADD).first.click()
    expect(page.locator("#cart-link .count")).to_contain_text("2")


def test_fields_that_could_not_be_sent_are_put_back(shop):
    page = shop("/")
    page.get_by_role("button", name=ADD).first.click()
    expect(page.locator("#cart-link .count")).to_contain_text("1")
    page.goto("/cart/")
    page.context.set_offline(True)
    page.fill("input[name=quantity]", "7")
    page.keyboard.press("Tab")
    expect(failure(page, "offline")).to_be_visible()
    expect(page.locator("input[name=quantity]")).to_have_value("1")
    page.context.set_offline(False)
    page.goto("/checkout/")
    page.select_option("[name=country]", "ES")
    expect(page.locator("#id_region")).to_be_visible()
    page.context.set_offline(True)
    page.select_option("[name=country]", "CH")
    expect(failure(page, "offline")).to_be_visible()
    expect(page.locator("[name=country]")).to_have_value("ES")


def test_other_language_and_an_old_token_keep_the_checkout(shop):
    page = shop("/")
    page.get_by_role("button", name=ADD).first.click()
    expect(page.locator("#cart-link .count")).to_contain_text("1")
    page.goto("/checkout/")
    page.fill("[name=name]", "Ada Lovelace")
    page.fill("[name=email]", "no address")
    page.get_by_role("button", name="Deutsch").click()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.locator("[name=name]")).to_have_value("Ada Lovelace")
    expect(page.locator("[name=email]")).to_have_value("no address")
    stale(page)
    page.locator("form#typed button[type=submit]").click()
    expect(page.locator(".errors")).to_be_focused()
    expect(page.locator("[name=name]")).to_have_value("Ada Lovelace")


@pytest.mark.parametrize("status", [403, 404])
def test_order_disappears_after_a_sign_out(shop, client, status):
    ada = User.objects.create_user("ada@example.org", "ada@example.org", "correct horse")
    client.force_login(ada, "django.contrib.auth.backends.ModelBackend")
    order = placed(client)
    page = shop("/")
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": page.url}
    page.context.add_cookies([cookie])
    page.goto(f"/orders/{order}/")
    expect(page.locator("main")).to_contain_text("Rue de Lyon 12")
    if status == 403:
        page.route("**/status/**", lambda route: route.fulfill(status=403))
    page.context.clear_cookies(name="sessionid")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "There is nothing here", timeout=60_000
    )
    assert "Rue de Lyon" not in page.content()
