"""The journey of goods that are exchanged."""

import re

from playwright.sync_api import Browser, expect

from drill.stack import Stack
from drill.waiting import wait_for
from tests.browser.people import fill_checkout
from tests.journeys.hand import Hand, Journey
from tests.journeys.other_orders import AWAITED, CONFIRMED
from tests.journeys.shop_and_operations import operator, page_of

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
    wait_for(lambda: stack.count(AWAITED, order) == 1, "the label is made")
    admin = operator(browser, stack, "admin")
    admin.goto(f"/admin/orders/order/{order}/change/")
    at_the_gate = Hand(admin, journey)
    at_the_gate.click(admin.get_by_role("link", name=re.compile("Returns")).first)
    at_the_gate.click(admin.get_by_role("button", name="The parcel has arrived"))
    staff = operator(browser, stack)
    staff.goto("/ops/decisions/")
    decides = Hand(staff, journey)
    wait_for(lambda: staff.reload() and staff.get_by_text("Decide…").count(), "it is seen", 30)
    decides.click(staff.get_by_text("Decide…").first)
    row = staff.locator("[id^=decision-]").first
    expect(row).to_contain_text("exchange")
    decides.type(row.locator("[name=payload]"), DECISION)
    decides.type(row.locator("[name=reason]"), "it has a chip")
    decides.click(row.get_by_role("button", name=re.compile("Record")))
    link = customer.locator("[data-replacement]")
    wait_for(lambda: customer.reload() and link.count(), "the new order is placed", 30)
    hand.click(link)
    expect(customer.locator("#replaces")).to_be_visible()
    hand.reach(customer.locator(CONFIRMED))
    stack.quiet()
    return journey
