"""Payments that wait for their customer or for a person: at the bank, by transfer, on the dashboard."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from drill.waiting import wait_for
from tests.browser.people import log_in, order, order_without_scripts

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(180)]
ASKS, RISKY = "pm_card_threeDSecure2Required", "pm_card_riskLevelElevated"
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
OF = "SELECT count(*) FROM orders_order WHERE id::text = %s AND status = %s"
FINAL = "#order-status[data-final=yes]"
WAITS = (
    "SELECT count(*) FROM orders_order WHERE id::text = %s AND snapshot::text LIKE '%%awaiting%%'"
)
PAID_BACK = "SELECT count(*) FROM orders_order WHERE id::text = %s AND refunded = 150"


def at_the_bank(page, act):
    """Go to the bank from the order's page, do something there, and come back."""
    page.locator("#pay a").click()
    page.wait_for_url(re.compile("/bank/pi_"))
    page.locator(f"button[value={act}]").click()


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
def test_payment_is_confirmed_at_the_bank(visit, stack, options):
    page = visit(**options)
    which = order(page, ASKS)
    expect(page.locator("#pay a")).to_be_visible()
    assert Axe().run(page).response["violations"] == []
    at_the_bank(page, "confirm")
    page.wait_for_url(re.compile(f"/orders/{which}/"))
    expect(page.locator(FINAL)).to_be_visible()
    expect(page.locator("#pay")).to_have_count(0)
    assert stack.sandbox("/ledger/summary")[which]["captured"] > 0
    assert page.problems == []


def test_refused_payment_is_paid_with_another_card_without_javascript(visit, stack):
    page = visit(java_script_enabled=False)
    which = order_without_scripts(page, ASKS)
    wait_for(lambda: stack.count(WAITS, which) == 1, "the payment waits for its customer", 30)
    page.reload()
    at_the_bank(page, "refuse")
    page.wait_for_url(re.compile(f"/orders/{which}/"))
    wait_for(lambda: stack.count(OF, which, "failed") == 1, "the refusal is known", 60)
    page.reload()
    page.check("[name=payment_method][value=pm_card_visa]")
    page.get_by_role("button", name=re.compile("with this card")).click()
    wait_for(lambda: stack.count(OF, which, "confirmed") == 1, "it is paid", 30)


WAITS = (
    "SELECT count(*) FROM orders_order WHERE id::text = %s AND snapshot::text LIKE '%%awaiting%%'"
)


def test_transfer_is_explained_and_taken_as_it_arrives(visit, stack):
    page = visit(**PHONE)
    which = order(page, "customer_balance")
    pay = page.locator("#pay")
    expect(pay).to_contain_text("IBAN")
    assert Axe().run(page).response["violations"] == []
    letters = wait_for(lambda: _letters(stack, which, "How to pay"), "the letter", 30)
    assert "IBAN" in letters[0]["text"]
    pay.locator("a").click()
    page.locator("button[value=confirm]").click()
    wait_for(lambda: stack.count(OF, which, "confirmed") == 1, "the transfer has arrived", 30)
    totals = stack.sandbox("/ledger/summary")[which]
    assert (totals["captured"], totals["authorized"]) == (totals["captured"], 0)


def _letters(stack, which, subject):
    number = stack.sql("SELECT number FROM orders_order WHERE id::text = %s", which)[0][0]
    messages = stack.sandbox(f"/mail/messages?search={number}")["messages"]
    return [message for message in messages if subject in message["subject"]]


def test_risky_order_goes_on_by_a_decision(visit, stack):
    customer = visit()
    which = order(customer, RISKY)
    wait_for(lambda: stack.count(WAITS, which) == 1, "it waits for a person", 30)
    page = visit("/login/")
    log_in(page, stack, "operator")
    page.goto("/ops/decisions/")
    row = page.locator("[id^=decision-]", has_text=which[:8]).or_(
        page.locator("[id^=decision-]").first
    )
    row.first.get_by_text("Decide…").click()
    expect(row.first).to_contain_text("75")
    row.first.locator("[name=payload]").fill('{"note": "called them"}')
    row.first.locator("[name=reason]").fill("a known customer")
    row.first.get_by_role("button", name=re.compile("Record|Decide|Save")).click()
    wait_for(lambda: stack.count(OF, which, "confirmed") == 1, "it goes on", 30)
    expect(customer.locator(FINAL)).to_be_visible(timeout=30_000)


def test_part_is_paid_back_in_the_admin(visit, stack):
    customer = visit()
    which = order(customer)
    expect(customer.locator(FINAL)).to_be_visible(timeout=30_000)
    page = visit("/login/")
    log_in(page, stack, "admin")
    page.goto(f"/admin/orders/order/{which}/change/")
    page.get_by_role("link", name="Refund…").click()
    assert Axe().run(page).response["violations"] == []
    page.fill("[name=amount]", "1.50")
    page.fill("[name=reason]", "A chip in the mug.")
    page.get_by_role("button", name="Pay back").click()
    expect(page.locator(".messagelist")).to_contain_text("1.50")
    wait_for(lambda: stack.count(PAID_BACK, which) == 1, "it is paid back", 30)
    assert stack.sandbox("/ledger/summary")[which]["refunded"] == 150
    customer.reload()
    expect(customer.locator("#refunded")).to_contain_text("1.50")
    wait_for(lambda: _letters(stack, which, "refund"), "the letter", 30)
