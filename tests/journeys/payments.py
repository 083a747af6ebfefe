"""The journeys of payments that wait: for the customer at their bank, or for a person who decides."""

import re
import time

from playwright.sync_api import Browser, Page, expect

from drill.stack import Stack
from drill.waiting import wait_for
from tests.browser.people import fill_checkout
from tests.journeys.hand import Hand, Journey
from tests.journeys.shop_and_operations import operator, page_of

ASKS, RISKY = "pm_card_threeDSecure2Required", "pm_card_riskLevelElevated"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
CONFIRMED = "#order-status[data-final=yes] #verdict.good"
UNDONE = "SELECT count(*) FROM orders_order WHERE id::text = %s AND status = 'undone'"
# what the clock does in half an hour
TIME_IS_UP = """
UPDATE orchestration_wait w SET ends_by = clock_timestamp(), due_at = clock_timestamp()
FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE w.step_id = s.id AND t.reference = %s AND s.name = 'authorize_payment'
"""


def _placed(page: Page, hand: Hand, card: str) -> str:
    """Send the filled checkout; return the order's id."""
    fill_checkout(page, card)
    hand.began = time.monotonic()
    hand.click(page.get_by_role("button", name=re.compile("Place the order")))
    page.wait_for_url(re.compile(r"/orders/[0-9a-f-]{36}/"))
    return page.url.split("/orders/")[1][:36]


def _at_the_bank(page: Page, hand: Hand, act: str) -> None:
    hand.click(page.locator("#pay a"))
    hand.click(page.locator(f"button[value={act}]"))


def payment_confirmed(browser: Browser, stack: Stack) -> Journey:
    """Confirm a payment at the bank, on a phone: from the filled checkout until it is confirmed."""
    journey = Journey(
        name="A payment confirmed at the bank, on a phone", goal="the order is confirmed"
    )
    page = browser.new_context(base_url=f"http://localhost:{stack.port}", **PHONE).new_page()
    hand = Hand(page, journey)
    _placed(page, hand, ASKS)
    _at_the_bank(page, hand, "confirm")
    hand.reach(page.locator(CONFIRMED))
    return journey


def payment_by_keyboard(browser: Browser, stack: Stack) -> Journey:
    """The same by keyboard alone: Tab to what is next, Enter."""
    journey = Journey(name="The same by keyboard only", goal="the order is confirmed")
    page = page_of(browser, stack)
    fill_checkout(page, ASKS)
    hand = Hand(page, journey)
    for target in ("button.primary.wide", "#pay a", "button[value=confirm]"):
        goal = page.locator(target).last
        expect(goal).to_be_visible()
        _tab_to(page, target)
        hand.press("Enter")
    hand.reach(page.locator(CONFIRMED))
    return journey


def _tab_to(page: Page, target: str) -> None:
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement?.matches(selector)", target):
            return
    raise AssertionError(f"Tab does not reach {target}")


def payment_refused(browser: Browser, stack: Stack) -> Journey:
    """Refuse a payment at the bank, then pay with another card."""
    journey = Journey(
        name="A payment refused at the bank", goal="the order is paid with another card"
    )
    page = page_of(browser, stack)
    hand = Hand(page, journey)
    _placed(page, hand, ASKS)
    _at_the_bank(page, hand, "refuse")
    other = page.locator("[id^=fix-authorize_payment] [name=payment_method][value=pm_card_visa]")
    hand.click(other)
    hand.click(page.get_by_role("button", name=re.compile("with this card")))
    hand.reach(page.locator(CONFIRMED))
    return journey


def payment_abandoned(browser: Browser, stack: Stack) -> Journey:
    """Leave the bank's page and do not come back: the order is undone as its time is up."""
    journey = Journey(
        name="A payment abandoned at the bank", goal="the order is cancelled, nothing charged"
    )
    page = page_of(browser, stack)
    hand = Hand(page, journey)
    order = _placed(page, hand, ASKS)
    hand.click(page.locator("#pay a"))
    stack.sql(TIME_IS_UP, order)
    hand.until(lambda: stack.count(UNDONE, order) == 1)
    assert stack.sandbox("/ledger/summary")[order]["captured"] == 0
    journey.notes.append("The half hour that the customer has is cut short.")
    return journey


def risky_order(browser: Browser, stack: Stack) -> Journey:
    """Decide about a risky order: from the overview until the order goes on."""
    journey = Journey(name="A risky order decided", goal="the order goes on")
    customer = page_of(browser, stack)
    _placed(customer, Hand(customer, Journey(name="", goal="")), RISKY)
    page = operator(browser, stack)
    page.goto("/ops/")
    hand = Hand(page, journey)
    wait_for(
        lambda: page.reload() and page.locator("#nav-decisions .count").count(), "it is seen", 30
    )
    hand.click(page.locator("#nav-decisions"))
    hand.click(page.get_by_text("Decide…").first)
    row = page.locator("[id^=decision-]").first
    expect(row).to_contain_text("75")
    hand.type(row.locator("[name=payload]"), '{"note": "a known customer"}')
    hand.type(row.locator("[name=reason]"), "they ordered before")
    hand.click(row.get_by_role("button", name=re.compile("Record")))
    expect(customer.locator(CONFIRMED)).to_be_visible()
    hand.reach(page.get_by_text("has its result"))
    return journey
