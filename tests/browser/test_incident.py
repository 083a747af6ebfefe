"""Resubmit a whole incident from the overview: in four clicks, and by keyboard."""

import re

import pytest
from playwright.sync_api import expect

from orchestration.incidents import aggregation
from orchestration.models import Event, Operation
from tests.support.engine import reply_to
from tests.support.operations import advance, answer, begin, failed, lead

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

COUNT = """
addEventListener("click", (event) => {  // a key that presses a button has no pointer
  if (!event.isTrusted || !event.detail) return;
  sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
}, true);
"""
MANY = 3


def on_the_overview(here):
    """Let tasks fail for one cause; return the overview as an operator, with clicks counted."""
    page = here()
    failed(MANY)
    aggregation.aggregate("supervisor-1")
    page.context.add_init_script(COUNT)
    page.evaluate("sessionStorage.clear()")
    page.goto("/ops/")
    return page


def clicks(page):
    return page.evaluate("Number(sessionStorage.clicks ?? 0)")


def work_off(page):
    """Run the operation to its end; expect the open page to show the end without a reload."""
    operation = Operation.objects.latest("id")
    expect(page).to_have_url(re.compile(f"/ops/operations/{operation.id}/"))
    begin(operation)
    leader = lead()
    advance(operation, leader)
    answer(reply_to)
    advance(operation, leader)
    status = page.locator(".ops-now")
    expect(status).to_contain_text(f"{MANY} resubmitted: {MANY} fixed.")
    expect(status.locator(".badge")).to_have_text("ended")


def test_whole_incident_is_resubmitted_in_four_clicks(here):
    page = on_the_overview(here)
    page.locator("#live .ops-causes a").first.click()
    page.get_by_role("button", name=f"Resubmit all {MANY}…").click()
    page.get_by_label("Reason").click()
    page.keyboard.type("the carrier is there again")
    page.get_by_role("button", name="Resubmit", exact=True).click()
    expect(page.locator("#cancel button")).to_be_visible()
    assert clicks(page) == 4
    work_off(page)
    assert page.problems == []


def test_whole_incident_is_resubmitted_by_keyboard(here):
    page = on_the_overview(here)
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url("**/ops/incidents/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/ops/incidents/\d+/"))
    page.keyboard.press("r")
    expect(page.get_by_role("button", name="Resubmit one first…")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=f"Resubmit all {MANY}…")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/ops/operations/\d+/"))
    page.keyboard.press("r")
    page.keyboard.type("they say it is well now\n")
    expect(page.locator("#cancel button")).to_be_visible()
    assert clicks(page) == 0
    work_off(page)
    resubmits = Event.objects.filter(kind="resubmitted").values_list("actor", "reason").distinct()
    assert list(resubmits) == [("operator", "they say it is well now")]
    assert page.problems == []
