"""The users whose pages are pictured, and their actions before the pictures."""

import re

from playwright.sync_api import Page, expect

from drill.stack import Stack
from tests.browser.people import create_account, fill_checkout, log_in, order
from tests.pictures.look import Eye

EMAIL, PASSWORD = "ada@example.org", "a tea mug and a kettle"  # on a stack for pictures only


def sign_up(page: Page, stack: Stack) -> None:
    """Create an account, order twice, once by a card that is declined, and subscribe."""
    create_account(page, stack, EMAIL, PASSWORD)
    order(page)
    order(page, "pm_card_visa_chargeDeclined")
    page.goto("/products/morning-house-blend/subscribe/")
    page.click("#place")
    page.wait_for_selector("#verdict")
    fill_checkout(page)


def sign_in(page: Page) -> None:
    """Sign in to the account of an earlier run."""
    page.goto("/account/sign-in/")
    page.fill("[name=email]", EMAIL)
    page.fill("[name=password]", PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/account/")


def operate(page: Page, stack: Stack, facts: dict[str, str]) -> None:
    """Create a bulk operation that ended, a dry run, a hold and a note as an operator."""
    log_in(page, stack, "operator")
    facts["operation"] = _chosen(page, facts["other"])
    page.get_by_role("radio", name=re.compile("^(All|One about)")).check()
    page.get_by_label("Reason").fill("the customer gave the right address")
    page.get_by_role("button", name="Resubmit", exact=True).click()
    expect(page.locator(".ops-now .badge")).to_have_text("ended", timeout=120_000)
    page.goto(f"/ops/incidents/{facts['incident']}/")
    page.locator("#s-note").click()
    page.fill("#d-note [name=text]", "The bank says that it is the cards, not them.")
    page.get_by_role("button", name="Save note").click()
    page.goto("/ops/tasks/?q=state:error")
    page.select_option("#scope", index=1)
    facts["draft"] = _dry_run(page)
    page.goto("/ops/holds/new/?agent=shipping")
    page.fill("[name=reason]", "the depot is closed until four")
    page.get_by_role("button", name="Hold").click()
    page.goto("/ops/agents/")
    release = page.locator("a[href*='/release/']").first.get_attribute("href") or ""
    facts["hold"] = re.findall(r"\d+", release)[0]


def _chosen(page: Page, task: str) -> str:
    page.goto("/ops/tasks/?q=state:error")
    page.check(f"#pick-{task}")
    return _dry_run(page)


def _dry_run(page: Page) -> str:
    page.get_by_role("button", name="Resubmit…").click()
    page.wait_for_url(re.compile(r"/ops/operations/\d+/"))
    return re.findall(r"\d+", page.url)[-1]


def enter(eyes: dict[str, Eye], stack: Stack) -> None:
    """Log in the users of the staff's pages."""
    for name in ("operator", "viewer", "admin"):
        log_in(eyes[name].page, stack, name)
