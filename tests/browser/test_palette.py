"""The command palette, the keys of all pages, and copying, in a browser."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from orchestration.messaging.messages import Evidence
from orchestration.transitions.replies import record
from tests.support.engine import claimed, in_error, new_task, reply_to

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
SELECTED = '#palette-list [aria-selected="true"]'
NARROW = {"width": 360, "height": 700}


def violations(page):
    return Axe().run(page).response["violations"]


def fits(page) -> bool:
    """Return whether a page has no sideways scroll."""
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def open_palette(page):
    page.keyboard.press("Control+k")
    expect(page.locator("#palette")).to_be_visible()
    return page.get_by_role("combobox", name="Command or search")


def test_palette_leads_to_pages_by_keyboard(here):
    page = here()
    text = open_palette(page)
    expect(text).to_be_focused()
    text.press_sequentially("audi")
    expect(page.locator(SELECTED)).to_have_attribute("data-kind", "Page")
    assert text.get_attribute("aria-activedescendant") == page.locator(SELECTED).get_attribute("id")
    text.press("Enter")
    page.wait_for_url("**/ops/audit/")
    open_palette(page).press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    assert page.problems == []


def test_palette_offers_what_the_page_offers(here):
    step = in_error(new_task("t-1"))
    page = here()
    page.goto(f"/ops/tasks/{step.task_id}/")
    text = open_palette(page)
    text.fill("hold")
    expect(page.locator(SELECTED)).to_have_attribute("data-kind", "Action")
    text.press("Enter")
    expect(page.locator("#act [name=reason]")).to_be_visible()
    assert page.problems == []


def test_palette_finds_tasks_incidents_and_agents_and_remembers_tasks(here):
    step = in_error(new_task("find-me-1"), code="no_room")
    page = here()
    text = open_palette(page)
    text.fill("find-me")
    expect(page.locator(SELECTED)).to_have_attribute("data-kind", "Task")
    text.fill("no_room")
    expect(page.locator(SELECTED)).to_have_attribute("data-kind", "Incident")
    text.fill("greeter")
    expect(page.locator('#palette-list [data-kind="Agent"]')).to_have_count(1)
    text.fill("find-me")
    expect(page.locator(SELECTED)).to_have_attribute("data-kind", "Task")
    text.press("Enter")
    page.wait_for_url(f"**/ops/tasks/{step.task_id}/")
    page.goto("/ops/")
    open_palette(page)
    expect(page.locator('#palette-list [data-kind="Recent"]')).to_have_count(1)
    text.press("ArrowUp")  # from the first to the last
    expect(page.locator("#palette-list li").last).to_have_attribute("aria-selected", "true")
    assert page.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_palette_is_accessible_on_a_narrow_page(here, scheme):
    page = here(viewport=NARROW, color_scheme=scheme)
    page.locator("[data-palette]").click()
    expect(page.locator("#palette-list li").first).to_be_visible()
    assert violations(page) == []
    assert fits(page)
    page.get_by_role("combobox").fill("no such thing")
    expect(page.locator("#palette-count")).to_have_text("No results.")
    assert violations(page) == []


def test_keys_lead_to_each_page_and_escape_leaves_a_field(here):
    page = here()
    for key, path in {"a": "agents", "s": "system", "l": "audit", "w": "workflows"}.items():
        page.keyboard.press("/")
        expect(page.locator("#q")).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**/ops/{path}/")
    page.keyboard.press("?")
    keys = page.locator("#keys")
    linked = page.eval_on_selector_all("#nav [data-go]", "all => all.map(one => one.dataset.go)")
    for letter in linked:
        expect(keys.locator("dt").filter(has_text=re.compile(f"^g {letter}$"))).to_have_count(1)


def test_failure_is_copied_and_its_attempt_found_from_the_timeline(here):
    task = new_task("t-1")
    (request,) = claimed()
    evidence = Evidence(traceback="Traceback:\nKeyError: 'x'", answer='{"a": 1}', status=500)
    record([reply_to(request, "unknown", evidence=evidence)])
    step = task.steps.get(name="hello")
    page = here(viewport=NARROW, permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"/ops/tasks/{task.id}/")
    page.locator("svg a[href^='#attempt-']").click()
    assert page.url.endswith(f"#attempt-{step.id}-1")
    expect(page.locator(f"#attempt-{step.id}-1")).to_be_in_viewport()
    page.locator("[data-evidence] summary").click()
    expect(page.locator("[data-traceback] pre")).to_be_visible()
    assert violations(page) == []
    assert fits(page)
    page.get_by_role("button", name="Copy the traceback").click()
    expect(page.locator("#announced")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == evidence.traceback
    page.get_by_role("button", name="Copy the id", exact=True).click()
    # the page says so as it did before
    copied = "text => navigator.clipboard.readText().then(now => now === text)"
    page.wait_for_function(copied, arg=str(task.id))
    assert page.problems == []


def test_nothing_is_offered_to_copy_without_javascript(here):
    task = new_task("t-1")
    page = here(java_script_enabled=False)
    page.goto(f"/ops/tasks/{task.id}/")
    expect(page.locator("[data-copy]").first).to_be_hidden()
    expect(page.locator("[data-palette]")).to_be_hidden()
