"""The journey of goods that are exchanged."""

import re

from playwright.sync_api import Browser, expect

from drill.stack import Stack
from drill.waiting import wait_for
from tests.browser.people import fill_checkout
from tests.journeys.hand import Hand, Journey
from tests.journeys.other_orders import CONFIRMED, inspect_return
from tests.journeys.shop_and_operations import page_of

DECISION = '{"percent": 100, "restock": false, "note": "sorry for the chip"}'


def goods_exchanged(browser: Browser, stack: Stack) -> Journey:
    """Exchange a damaged unit: the customer wishes for it, staff look at what came, the new order is sent."""
    journey = Journey(
        name="An exchange, from the wish to the new order", goal="the new order is sent"
    )
    customer = page_of(browser, stack)
    fill_checkout(customer)
    customer.locator("#place").click()
    customer.wait_for_url(re.compile(r"/orders/[0-9a-f-]{36}/"))
    order = customer.url.split("/orders/")[1][:36]
    expect(customer.locator(CONFIRMED)).to_be_visible()
    customer.reload()
    hand = Hand(customer, journey)
    hand.click(customer.locator("#return summary"))
    hand.choose(customer.locator("#return select").first, "1")
    hand.click(customer.get_by_text("The same again"))
    hand.click(customer.get_by_role("button", name="Send it back"))
    inspect_return(
        browser, stack, journey, order, shows="exchange", decision=DECISION, reason="it has a chip"
    )
    link = customer.locator("[data-replacement]")
    wait_for(lambda: customer.reload() and link.count(), "the new order is placed", 30)
    hand.click(link)
    expect(customer.locator("#replaces")).to_be_visible()
    hand.reach(customer.locator(CONFIRMED))
    stack.quiet()
    return journey
