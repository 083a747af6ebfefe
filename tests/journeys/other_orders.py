"""The journeys of orders in parcels, of gift cards, pre-orders, returns, subscriptions and passkeys."""

import re
from urllib.parse import quote

from playwright.sync_api import Browser, Page, expect

from drill.stack import Stack
from drill.waiting import wait_for
from tests.browser.people import create_account, fill_checkout
from tests.journeys.hand import Hand, Journey
from tests.journeys.shop_and_operations import break_partner, heal, operator, page_of

PLENTY = 1_000_000
AWAY = "brew-kettle"  # the other warehouse has it
CODE = re.compile(r"[0-9A-Z]{4}(?:-[0-9A-Z]{4}){3}")
CONFIRMED = "#order-status[data-final=yes] #verdict.good"
FAILED = "SELECT count(*) FROM orders_parcel WHERE order_id::text = %s AND state = 'failed'"
AWAITED = "SELECT count(*) FROM orders_return WHERE order_id::text = %s AND state = 'awaited'"


def add(page: Page, slug: str) -> None:
    """Put a product into the cart."""
    page.goto(f"/products/{slug}/")
    page.locator("main form.add button").first.click()
    expect(page.locator("#messages")).to_contain_text("cart")


def _place(page: Page, hand: Hand) -> str:
    """Send the filled checkout; return the order's id."""
    expect(page.locator("#place")).to_be_enabled()
    hand.click(page.locator("#place"))
    page.wait_for_url(re.compile(r"/orders/[0-9a-f-]{36}/"))
    return page.url.split("/orders/")[1][:36]


def parcel_lost(browser: Browser, stack: Stack) -> Journey:
    """Cancel the parcel of a split order that cannot be sent; the other goes, and its customer sees both."""
    journey = Journey(name="A split order, one parcel lost", goal="the customer sees the other go")
    stack.sandbox("/inventory/stock", {AWAY: {"south": PLENTY}}, "PUT")
    break_partner(stack, partner="shipping", action="book", fault="reject", code="lost", times=1)
    customer = page_of(browser, stack)
    add(customer, "gooseneck-kettle")
    fill_checkout(customer)
    order = _place(customer, Hand(customer, Journey(name="", goal="")))
    wait_for(lambda: stack.count(FAILED, order) == 1, "one parcel has failed")
    heal(stack)
    page = operator(browser, stack)
    page.goto("/ops/")
    row = page.locator("tbody[id^=failed-]").first
    expect(row).to_be_visible()
    hand = Hand(page, journey)
    hand.click(row.get_by_role("link").first)
    hand.click(page.get_by_text("Undo…").first)
    hand.type(page.get_by_label("Reason").first, "it was lost at the depot")
    hand.click(page.get_by_role("button", name=re.compile("^Undo")).first)
    expect(customer.locator(CONFIRMED)).to_be_visible(timeout=60_000)
    parcels = customer.locator("#parcels li")
    expect(parcels.filter(has_text="Cancelled")).to_have_count(1)
    hand.reach(page.locator(".badge.undone").first)
    stack.quiet()
    return journey


def gift_card(browser: Browser, stack: Stack) -> Journey:
    """Buy a gift card, and pay an order with the code of its letter."""
    journey = Journey(name="A gift card bought and spent", goal="the second order costs nothing")
    page, buyer = page_of(browser, stack), "gift@example.org"
    page.goto("/products/gift-card/")
    hand = Hand(page, journey)
    hand.click(page.locator("main form.add button").first)
    expect(page.locator("#messages")).to_contain_text("cart")
    page.goto("/checkout/")
    for name, text in {
        "name": "Ada Lovelace", "email": buyer, "street": "Kastanienallee 12", "postcode": "10435",
        "city": "Berlin",
    }.items():  # fmt: skip
        hand.type(page.locator(f"[name={name}]"), text)
    _place(page, hand)
    expect(page.locator(CONFIRMED)).to_be_visible()

    def code() -> str:
        letters = stack.sandbox(f"/mail/messages?to={quote(buyer)}")["messages"]
        codes = [CODE.search(letter["text"]) for letter in letters]
        return next((match[0] for match in codes if match), "")

    known = wait_for(code, "the letter with the code", 30)
    fill_checkout(page)
    hand.type(page.locator("[name=gift_card]"), known)
    page.locator("[name=gift_card]").press("Tab")
    expect(page.locator("[data-sum=gift_card]")).to_be_visible()
    _place(page, hand)
    hand.reach(page.locator(CONFIRMED))
    return journey


def preorder(browser: Browser, stack: Stack) -> Journey:
    """Order what is released later, and cancel it before."""
    journey = Journey(name="A pre-order, cancelled before its release", goal="it is cancelled")
    page = page_of(browser, stack)
    add(page, "harvest-box")
    fill_checkout(page)
    hand = Hand(page, journey)
    order = _place(page, hand)
    expect(page.locator("#verdict")).to_contain_text("until the release")
    assert order not in stack.sandbox("/ledger/summary")  # nothing is reserved or charged
    hand.click(page.locator("#cancel summary, details.cancel summary").first)
    hand.click(page.get_by_role("button", name=re.compile("cancel", re.IGNORECASE)).first)
    hand.reach(page.locator("#order-status[data-final=yes] #verdict.bad"))
    return journey


def goods_returned(browser: Browser, stack: Stack) -> Journey:
    """Send goods back: the customer asks, staff note the parcel and decide, the money is on its way."""
    journey = Journey(name="A return, from the wish to the money", goal="the customer is paid back")
    customer = page_of(browser, stack)
    fill_checkout(customer)
    hand = Hand(customer, journey)
    order = _place(customer, Hand(customer, Journey(name="", goal="")))
    expect(customer.locator(CONFIRMED)).to_be_visible()
    customer.reload()
    hand = Hand(customer, journey)
    hand.click(customer.locator("#return summary"))
    hand.choose(customer.locator("#return select").first, "1")
    hand.click(customer.get_by_role("button", name="Send it back"))
    decision = '{"percent": 100, "restock": true, "note": "as new"}'
    inspect_return(
        browser, stack, journey, order, shows="1 x", decision=decision, reason="it is as new"
    )
    wait_for(
        lambda: customer.reload() and customer.locator("#refunded").count(), "it is paid back", 30
    )
    hand.reach(customer.locator("[data-return=refunded]"))
    stack.quiet()
    return journey


def inspect_return(
    browser: Browser,
    stack: Stack,
    journey: Journey,
    order: str,
    *,
    shows: str,
    decision: str,
    reason: str,
) -> None:
    """Note as staff that an order's parcel has come back, and decide about it by what *Decisions* shows."""
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
    expect(row).to_contain_text(shows)
    decides.type(row.locator("[name=payload]"), decision)
    decides.type(row.locator("[name=reason]"), reason)
    decides.click(row.get_by_role("button", name=re.compile("Record")))


def subscription_paused(browser: Browser, stack: Stack) -> Journey:
    """Begin a subscription, and pause it."""
    journey = Journey(name="A subscription begun and paused", goal="it is paused")
    page = page_of(browser, stack)
    create_account(page, stack, "regular@example.org")
    page.goto("/products/morning-house-blend/")
    hand = Hand(page, journey)
    hand.click(page.get_by_role("link", name="Every 4 weeks"))
    for name, text in {
        "name": "Ada Lovelace", "street": "12 Analytical Way", "postcode": "T12 W8KP", "city": "Cork",
    }.items():  # fmt: skip
        hand.type(page.locator(f"[name={name}]"), text)
    hand.choose(page.locator("[name=country]"), "IE")
    expect(page.locator('[data-sum="shipping"] dd')).to_be_visible()
    expect(page.locator("#place")).to_be_enabled()
    hand.click(page.get_by_role("button", name=re.compile("Subscribe and order")))
    hand.click(page.get_by_role("button", name="Pause"))
    hand.reach(page.locator("#verdict", has_text="Paused"))
    stack.quiet()
    return journey


def passkey(browser: Browser, stack: Stack) -> Journey:
    """Set up a passkey as the second factor of an account, and sign in with it alone."""
    journey = Journey(name="A passkey set up, and used to sign in", goal="the account is open")
    page = page_of(browser, stack)
    create_account(page, stack, "key@example.org")
    chrome = page.context.new_cdp_session(page)
    chrome.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True,
        "hasUserVerification": True, "isUserVerified": True, "automaticPresenceSimulation": True,
    }  # fmt: skip
    chrome.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    page.goto("/account/")
    hand = Hand(page, journey)
    hand.click(page.get_by_role("link", name="Second factor"))
    hand.click(page.get_by_role("link", name="Add a passkey"))
    hand.type(page.locator("[name=name]"), "Phone")
    hand.click(page.get_by_role("button", name="Add a passkey"))
    expect(page.locator("[data-recovery-codes] li")).to_have_count(10)
    page.goto("/account/")
    hand.click(page.get_by_role("button", name="Sign out"))
    page.goto("/account/sign-in/")
    hand.click(page.get_by_role("button", name="Sign in with a passkey"))
    hand.reach(page.get_by_role("heading", level=1, name="Your account"))
    return journey


def stuck_order(browser: Browser, stack: Stack) -> Journey:
    """Understand why an order is stuck: from its number, as a customer names it, to the cause."""
    journey = Journey(name="A stuck order, understood in one look", goal="its cause is seen")
    break_partner(stack, partner="shipping", action="book", fault="reject", code="no_such_street")
    customer = page_of(browser, stack)
    fill_checkout(customer)
    _place(customer, Hand(customer, Journey(name="", goal="")))
    number = customer.locator("#what").inner_text().split()[-1]
    page = operator(browser, stack)
    page.goto("/ops/tasks/")
    hand = Hand(page, journey)
    hand.type(page.locator("[name=q]").first, number)
    hand.press("Enter")
    hand.reach(page.get_by_text("no_such_street").first)
    heal(stack)
    return journey
