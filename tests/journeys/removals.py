"""The journey of an order from which its customer removes something before it is sent."""

import re

from playwright.sync_api import Browser, expect

from drill.stack import Stack
from drill.waiting import wait_for
from tests.browser.people import fill_checkout
from tests.journeys.hand import Hand, Journey
from tests.journeys.other_orders import CONFIRMED, add
from tests.journeys.payments import ASKS
from tests.journeys.shop_and_operations import page_of

RELEASED = "parts_released"


def line_cancelled(browser: Browser, stack: Stack) -> Journey:
    """Remove a line from an order whose bank asks, and pay what is left."""
    journey = Journey(name="A line cancelled, the rest sent", goal="the rest is confirmed")
    page = page_of(browser, stack)
    add(page, "gooseneck-kettle")
    fill_checkout(page, ASKS)
    page.get_by_role("button", name=re.compile("Place the order")).click()
    page.wait_for_url(re.compile(r"/orders/[0-9a-f-]{36}/"))
    order = page.url.split("/orders/")[1][:36]
    hand = Hand(page, journey)
    hand.click(page.locator("[data-remove] summary").first)
    hand.click(page.get_by_role("button", name="Remove it from the order").first)
    expect(page.locator("[data-removed]")).to_be_visible()
    wait_for(lambda: stack.sandbox(f"/ledger/summary?order={order}")[order][RELEASED] == 1,
             "its units are free")  # fmt: skip
    hand.click(page.locator("#pay a"))
    hand.click(page.locator("button[value=confirm]"))
    hand.reach(page.locator(CONFIRMED))
    money = stack.sandbox(f"/ledger/summary?order={order}")[order]
    assert 0 < money["captured"] < money["authorized"]
    stack.quiet()
    return journey
