"""From the overview to the end of a whole incident: in four clicks, and by keys alone."""

import re

import pytest
from playwright.sync_api import expect

from orchestration import incidents
from orchestration.models import Event, Operation
from tests.engine import reply_to
from tests.operations import advance, answer, begin, failed, lead

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

COUNT = """
addEventListener("click", (event) => {  // a key that presses a button has no pointer
  if (!event.isTrusted || !event.detail) return;
  sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
}, true);
"""
MANY = 3


def on_the_overview(here):
    """Let tasks fail for one cause; return the overview, opened by an operator, with its clicks counted."""
    page = here()
    failed(MANY)
    incidents.fold("supervisor-1")
    page.context.add_init_script(COUNT)
    page.evaluate("sessionStorage.clear()")
    page.goto("/ops/")
    return page


def clicks(page):
    return page.evaluate("Number(sessionStorage.clicks ?? 0)")


def work_off(page):
    """Let ten seconds pass, a supervisor lead and the agent answer; the page tells the end by itself."""
    operation = Operation.objects.latest("id")
    expect(page).to_have_url(re.compile(f"/ops/operations/{operation.id}/"))
    begin(operation)
    leader = lead()
    advance(operation, leader)
    answer(reply_to)
    advance(operation, leader)
    told = page.locator(".ops-now")
    expect(told).to_contain_text(f"{MANY} resubmitted: {MANY} fixed.")
    expect(told.locator(".badge")).to_have_text("ended")


def test_an_incident_never_tried_is_resubmitted_whole_in_four_clicks(here):
    page = on_the_overview(here)
    page.locator("#live .ops-incidents a").first.click()
    page.get_by_role("button", name=f"Resubmit all {MANY}…").click()
    page.get_by_label("Why").click()
    page.keyboard.type("the carrier is there again")
    page.get_by_role("button", name="Resubmit", exact=True).click()
    expect(page.get_by_role("button", name="Take it back")).to_be_visible()
    assert clicks(page) == 4
    work_off(page)
    assert page.problems == []


def test_and_by_keys_alone(here):
    page = on_the_overview(here)
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url("**/ops/incidents/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/ops/incidents/\d+/"))
    page.keyboard.press("r")
    expect(page.get_by_role("button", name="Resubmit one, to see…")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=f"Resubmit all {MANY}…")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/ops/operations/\d+/"))
    page.keyboard.press("r")
    page.keyboard.type("they say it is well now\n")
    expect(page.get_by_role("button", name="Take it back")).to_be_visible()
    assert clicks(page) == 0
    work_off(page)
    told = Event.objects.filter(kind="resubmitted").values_list("actor", "reason").distinct()
    assert list(told) == [("operator", "they say it is well now")]
    assert page.problems == []
