"""The journeys of a customer and of operators, on a running stack."""

import re
from typing import Any

from playwright.sync_api import Browser, Page, expect

from drill.stack import Stack
from drill.waiting import wait_for
from tests.browser.people import log_in
from tests.journeys.hand import Hand, Journey

WAITING = 59  # orders that an outage stops
FAILED = 62  # orders that fail by one cause
IN_ERROR = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
WHERE t.reference = ANY(%s) AND s.process_state = 'error'
"""
THRESHOLD = "SELECT failure_threshold FROM orchestration_policy WHERE agent = 'payment'"
DONE = "SELECT count(*) FROM orchestration_task WHERE reference = ANY(%s) AND state = 'processed'"
HELD_UP = """
SELECT count(*) FROM orchestration_step s JOIN orchestration_task t ON t.id = s.task_id
JOIN orchestration_gate g ON g.agent = s.agent
WHERE t.reference = ANY(%s) AND s.process_state IN ('pending', 'processing') AND g.state <> 'closed'
"""


def page_of(browser: Browser, stack: Stack) -> Page:
    """Return a page in a context of its own."""
    context = browser.new_context(
        base_url=f"http://localhost:{stack.port}", viewport={"width": 1280, "height": 800}
    )
    return context.new_page()


def operator(browser: Browser, stack: Stack, name: str = "operator") -> Page:
    """Return a page of an operator who has logged in before."""
    page = page_of(browser, stack)
    log_in(page, stack, name)
    return page


def first_order(browser: Browser, stack: Stack) -> Journey:
    """Order as a guest: from the shop's first page until the order is confirmed."""
    journey = Journey(name="A first order", goal="the order is confirmed")
    page = page_of(browser, stack)
    page.goto("/")
    hand = Hand(page, journey)
    hand.click(page.get_by_role("button", name=re.compile("^Add to cart")).first)
    expect(page.locator("#messages")).to_contain_text("cart")
    hand.click(page.locator(".cart-link"))
    hand.click(page.get_by_role("link", name=re.compile("check ?out", re.IGNORECASE)))
    for name, text in {
        "name": "Ada Lovelace", "email": "ada@example.org", "street": "12 Merrion Square",
        "postcode": "D02 X285", "city": "Dublin",
    }.items():  # fmt: skip
        hand.type(page.locator(f"[name={name}]"), text)
    hand.choose(page.locator("[name=country]"), "IE")
    hand.click(page.locator("[name=payment_method][value=pm_card_visa]"))
    hand.click(page.get_by_role("button", name=re.compile("Place the order")))
    hand.reach(page.locator("#verdict.good"))
    return journey


def outage(browser: Browser, stack: Stack) -> Journey:
    """Find an outage and its cause: from the overview until its agent and its failure are seen."""
    journey = Journey(name="An outage found and understood", goal="its cause is seen")
    break_partner(stack, partner="inventory", fault="reset")
    orders = stack.place(WAITING)
    wait_for(lambda: stack.count(HELD_UP, orders) == WAITING, "all of them wait")
    page = operator(browser, stack)
    page.goto("/ops/")
    hand = Hand(page, journey)
    lead = page.locator(".verdict [data-lead]")
    expect(lead).to_contain_text("inventory loses replies")
    journey.notes.append(
        f"The first sentence: “{' '.join(page.locator('.verdict').inner_text().split())}”"
    )
    hand.click(lead)
    hand.reach(page.locator("#agent-inventory [data-cause] a"))
    heal(stack)
    stack.quiet()
    return journey


def one_task(browser: Browser, stack: Stack) -> Journey:
    """Mend one task: from the overview until its order is processed."""
    journey = Journey(name="One task", goal="the task is processed")
    break_partner(stack, partner="shipping", action="book", fault="reject", code="label_printer")
    (order,) = stack.place(1)
    wait_for(lambda: stack.count(IN_ERROR, [order]) == 1, "it has failed")
    heal(stack)
    page = operator(browser, stack)
    page.goto("/ops/")
    row = page.locator("tbody[id^=failed-]").first
    expect(row).to_be_visible()
    hand = Hand(page, journey)
    hand.click(row.get_by_text("Resubmit…"))
    hand.type(row.get_by_label("Reason"), "the printer works again")
    hand.click(row.get_by_role("button", name="Resubmit “create_shipment”"))
    hand.until(lambda: stack.count(DONE, [order]) == 1)
    stack.quiet()
    return journey


def one_incident(browser: Browser, stack: Stack) -> Journey:
    """Mend all tasks of one incident: from the overview until all of them are fixed."""
    journey = Journey(name=f"{FAILED} tasks of one incident", goal="all of them are fixed")
    break_partner(stack, partner="shipping", action="book", fault="reject", code="depot_closed")
    orders = stack.place(FAILED)
    wait_for(lambda: stack.count(IN_ERROR, orders) == FAILED, "all of them failed")
    heal(stack)
    page = operator(browser, stack)
    lead = page.locator(".verdict [data-lead]")
    expect(lead).to_contain_text("depot_closed", timeout=20_000)
    hand = Hand(page, journey)
    hand.click(lead)
    hand.click(page.get_by_role("button", name=re.compile(f"Resubmit all {FAILED}")))
    hand.type(page.get_by_label("Reason"), "the depot is open again")
    hand.click(page.get_by_role("button", name="Resubmit", exact=True))
    hand.reach(page.locator(".ops-now", has_text=f"{FAILED} fixed"), seconds=120)
    journey.notes.append("Ten of the seconds are those in which the operation can be taken back.")
    stack.quiet()
    return journey


def policy(browser: Browser, stack: Stack) -> Journey:
    """Change a threshold and set it back: from the admin's first page until the former value holds."""
    journey = Journey(name="A policy changed and reverted", goal="the former value is set again")
    page = page_of(browser, stack)
    log_in(page, stack, "admin")
    page.goto("/admin/")
    hand = Hand(page, journey)
    hand.click(page.get_by_role("link", name="Policies", exact=True).first)
    hand.click(page.get_by_role("link", name="payment", exact=True))
    threshold = page.locator("[name=failure_threshold]")
    former = threshold.input_value()
    hand.type(threshold, "7")
    hand.click(page.get_by_role("button", name="Save", exact=True))
    hand.click(page.locator("[data-undo]"))
    hand.type(page.locator("[name=reason]"), "it was too high")
    hand.click(page.get_by_role("button", name="Save", exact=True))
    hand.until(lambda: stack.sql(THRESHOLD) == [(int(former),)])
    return journey


def break_partner(stack: Stack, **fault: Any) -> None:
    """Have a partner fail."""
    stack.sandbox("/faults", {"faults": [fault]}, "PUT")


def heal(stack: Stack) -> None:
    """Have all partners work again."""
    stack.sandbox("/faults", method="DELETE")
