"""A whole search resubmitted in a real browser, on a running stack: the true end, and nothing twice."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from drill.verdict import check
from tests.browser.people import log_in
from tests.servers import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(180)]
MANY = 6


def test_what_failed_is_mended_and_resubmitted_in_bulk(visit, stack):
    refuse = {"partner": "shipping", "action": "book", "fault": "reject", "times": MANY}
    stack.sandbox("/faults", {"faults": [refuse]}, "PUT")
    orders = stack.place(MANY)
    suffering = "SELECT count(*) FROM orchestration_step WHERE process_state = 'error'"
    wait_for(lambda: stack.count(suffering) >= MANY, "all of them failed")
    stack.sandbox("/faults", method="DELETE")

    page = visit("/login/")
    log_in(page, stack, "operator")
    page.goto("/ops/tasks/?q=state:error step:create_shipment")
    page.select_option("#scope", index=1)
    page.get_by_role("button", name="Resubmit…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Resubmit: what it would do")
    expect(page.locator(".figure").first).to_contain_text(f"{MANY}")
    accessible(page)
    page.get_by_role("radio", name=re.compile("^All")).check()
    page.get_by_label("Why").fill("the carrier is there again")
    page.get_by_role("button", name="Resubmit", exact=True).click()
    expect(page.get_by_role("button", name="Take it back")).to_be_visible()
    accessible(page)
    said = f"{MANY} resubmitted: {MANY} fixed."
    expect(page.locator(".ops-now")).to_contain_text(said, timeout=40_000)
    expect(page.locator(".ops-now .badge")).to_have_text("ended")
    accessible(page)
    assert page.problems == []
    stack.quiet()
    check(stack, orders)


def accessible(page):
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
