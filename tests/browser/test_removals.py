"""Something is removed from an order that waits for its bank, on a phone, in German."""

import re

import pytest
from playwright.sync_api import expect

from drill.waiting import wait_for
from tests.browser.people import check, fill_checkout

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(180)]
ASKS = "pm_card_threeDSecure2Required"


def test_line_is_removed_and_the_rest_is_paid(visit, stack):
    page = visit("/products/gooseneck-kettle/")
    page.locator("main form.add button").first.click()
    expect(page.locator("#messages")).to_contain_text("cart")
    fill_checkout(page, ASKS)
    page.locator("#place").click()
    page.wait_for_url(re.compile(r"/orders/[0-9a-f-]{36}/"))
    order = page.url.split("/orders/")[1][:36]
    expect(page.locator("[data-remove]")).to_have_count(2, timeout=30_000)
    before = page.url
    page.locator("button[lang=de]").click()
    page.goto(before)
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("[data-remove] summary").first).to_contain_text("Entfernen")
    page.locator("[data-remove] summary").first.click()
    check(page)
    page.get_by_role("button", name="Aus der Bestellung entfernen").first.click()
    expect(page.locator("[data-removed]")).to_be_visible(timeout=30_000)
    expect(page.locator("[data-too-much]")).to_be_visible()
    check(page)
    totals = lambda: stack.sandbox(f"/ledger/summary?order={order}")[order]  # noqa: E731
    wait_for(lambda: totals()["parts_released"] == 1, "its units are free", 30)
    page.locator("#pay a").click()
    page.locator("button[value=confirm]").click()
    expect(page.locator("#order-status[data-final=yes] #verdict.good")).to_be_visible(
        timeout=60_000
    )
    assert 0 < totals()["captured"] < totals()["authorized"]
    assert page.problems == []
