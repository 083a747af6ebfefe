"""A subscription as its customer uses it: with the sums that follow, without JavaScript, without barriers."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.people import check, create_account

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(180)]
PRODUCT = "/products/morning-house-blend/"
PLACE = re.compile("Subscribe and order")
ADDRESS = {
    "name": "Ada Lovelace", "street": "12 Analytical Way", "postcode": "T12 W8KP", "city": "Cork",
}  # fmt: skip
ORDERS = 'SELECT count(*) FROM orders_subscriptionorder s JOIN orders_order o ON o.id = s."order"'


def begin(page, quantity="2"):
    """Go from the product to the form, and fill it in."""
    page.goto(PRODUCT)
    page.get_by_role("link", name="Every 4 weeks").click()
    page.fill("[name=quantity]", quantity)
    for name, text in ADDRESS.items():
        page.fill(f"[name={name}]", text)
    page.select_option("[name=country]", "IE")
    expect(page.get_by_role("radio", name="every 4 weeks")).to_be_checked()


def act(page, name):
    page.get_by_role("button", name=name).click()
    return page.locator("#verdict")


def test_subscription_from_the_product_to_its_end(visit, stack):
    page = visit()
    create_account(page, stack, "subscriber@example.org")
    begin(page)
    expect(page.locator('[data-sum="subtotal"] dd')).to_have_text("€19.00")
    expect(page.locator('[data-sum="shipping"] dd')).to_have_text("€9.90")
    expect(page.locator("#place")).to_be_enabled()
    page.get_by_role("button", name=PLACE).click()
    verdict = page.locator("#verdict")
    expect(verdict).to_contain_text("€28.90")
    stack.quiet()
    assert stack.count(ORDERS) == 1
    check(page)
    first = verdict.get_attribute("data-next")
    expect(act(page, "Skip the next one")).not_to_have_attribute("data-next", first)
    expect(act(page, "Pause")).to_contain_text("Paused")
    expect(act(page, re.compile("^Resume"))).to_contain_text("€28.90")
    page.get_by_role("link", name="Change", exact=True).click()
    check(page)
    page.fill("[name=quantity]", "1")
    page.get_by_role("button", name="Keep these changes").click()
    expect(verdict).to_contain_text("€19.40")
    page.locator("#end summary").click()
    check(page)
    expect(act(page, "Yes, end it")).to_contain_text("has ended")
    page.goto("/account/subscriptions/")
    expect(page.locator("[data-subscription]")).to_have_attribute("data-subscription", "ended")
    check(page)
    assert page.problems == []


def test_form_of_a_subscription_has_no_barrier_and_says_what_is_wrong(visit, stack):
    page = visit()
    create_account(page, stack, "careful@example.org")
    page.goto(PRODUCT)
    check(page)
    begin(page, "0")
    expect(page.locator("#place")).to_be_enabled()
    check(page)
    page.get_by_role("button", name=PLACE).click()
    expect(page.locator(".errors")).to_be_focused()
    check(page)


def test_subscription_works_without_javascript(visit, stack):
    page = visit(java_script_enabled=False)
    create_account(page, stack, "plain@example.org")
    begin(page)
    page.get_by_role("button", name=PLACE).click()
    expect(page.locator(".errors")).to_contain_text(
        "Nothing was ordered"
    )  # another price of delivery
    page.get_by_role("button", name=PLACE).click()
    expect(page.locator("#verdict")).to_contain_text("€28.90")
    expect(act(page, "Pause")).to_contain_text("Paused")
