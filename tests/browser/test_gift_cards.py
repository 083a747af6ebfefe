"""A gift card from its purchase to a free order, on the screen and in the customer's letters."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from drill.waiting import wait_for
from tests.browser.people import check, fill_checkout

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(180)]
BUYER = "gift@example.org"
CODE = re.compile(r"[0-9A-Z]{4}(?:-[0-9A-Z]{4}){3}")
FINAL = "#order-status[data-final=yes]"


def place(page):
    expect(page.locator("#place")).to_be_enabled()
    page.locator("#place").click()
    page.wait_for_url(re.compile(r"/orders/[0-9a-f-]{36}/"))
    expect(page.locator(FINAL)).to_be_visible(timeout=60_000)
    return page.url.split("/orders/")[1][:36]


def code_in_letter(stack):
    letters = stack.sandbox(f"/mail/messages?to={quote(BUYER)}")["messages"]
    codes = [CODE.search(letter["text"]) for letter in letters]
    return next((match[0] for match in codes if match), "")


def test_gift_card_is_bought_and_pays_an_order(visit, stack):
    page = visit("/products/gift-card/")
    check(page)
    page.locator("main form.add button").first.click()
    expect(page.locator("#messages")).to_contain_text("cart")
    page.goto("/checkout/")
    for name, text in {
        "name": "Ada Lovelace", "email": BUYER, "street": "Kastanienallee 12",
        "postcode": "10435", "city": "Berlin",
    }.items():  # fmt: skip
        page.fill(f"[name={name}]", text)
    bought = place(page)
    assert stack.sandbox("/ledger/summary")[bought]["captured"] == 2500
    code = wait_for(lambda: code_in_letter(stack), "the letter with the code", 30)

    page.goto("/")
    fill_checkout(page)
    page.fill("[name=gift_card]", code)
    page.locator("[name=gift_card]").press("Tab")
    expect(page.locator("[data-sum=gift_card]")).to_be_visible()
    expect(page.locator("#id_payment_method")).to_be_hidden()
    check(page)
    free = place(page)
    expect(page.locator("[data-sum=to_pay]")).to_contain_text("0.00")
    check(page)
    assert "captured" not in stack.sandbox("/ledger/summary")[free] or (
        stack.sandbox("/ledger/summary")[free]["captured"] == 0
    )
    assert page.problems == []


@pytest.mark.parametrize("slug", ["harvest-box", "mug-with-your-initials"])
def test_what_is_not_in_stock_is_marked_on_the_way_to_the_order(visit, slug):
    page = visit(f"/products/{slug}/")
    check(page)
    page.locator("main form.add button").first.click()
    expect(page.locator("#messages")).to_contain_text("cart")
    for address in ("/cart/", "/checkout/"):
        page.goto(address)
        expect(page.locator("[data-terms]")).to_be_visible()
        expect(page.locator("[data-order-note]")).to_be_visible()
        check(page)
    assert page.problems == []
