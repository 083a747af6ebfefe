"""The dashboard under an operator's hands: refreshes move neither rows, selection nor focus.

No stack runs: a web server in this process serves the pages, and the tests write the states.
"""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from orchestration.models import Event, Step
from orchestration.transitions.replies import record
from tests.support.engine import claimed, in_error, new_task, reply_to

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

WHERE = """() => ({
  scroll: window.scrollY,
  focus: document.activeElement.id,
  rows: [...document.querySelectorAll("#live tbody tr")].map(
    (row) => [row.parentElement.id, Math.round(row.getBoundingClientRect().top)]),
  chosen: [...document.querySelectorAll("input[name=task]:checked")].map((box) => box.value),
})"""
PILL = "[data-live-state]"


def test_selection_and_scroll_position_survive_five_refreshes(here):
    for number in range(8):
        in_error(new_task(f"bad-{number}"))
    page = here(viewport={"width": 1280, "height": 500})
    page.goto("/ops/tasks/?q=state:error")
    boxes = page.locator("input[name=task]")
    chosen = [boxes.nth(at).get_attribute("value") for at in (0, 2, 3)]
    for box in chosen:
        page.check(f"#pick-{box}")
    expect(page.locator(PILL)).to_contain_text("Paused while rows are selected")
    page.evaluate("window.scrollTo(0, 140)")
    before = page.evaluate(WHERE)
    assert (before["chosen"], before["focus"]) == (chosen, f"pick-{chosen[-1]}")
    assert before["scroll"] == 140
    for number in range(5):
        in_error(new_task(f"new-{number}"))  # one more that belongs to this list
        Step.objects.exclude(error_code="").update(error_message=f"look {number}")
        page.keyboard.press("u")
        expect(page.locator(f"#live table [title='look {number}']").first).to_be_visible()
        assert page.evaluate(WHERE) == before
    expect(page.locator("#fresh")).to_contain_text("5 new")
    page.click("#fresh")
    expect(page.locator("input[name=task]:checked")).to_have_count(3)  # it is the same search
    page.click("[data-choose-none]")
    page.locator("h1").click()
    expect(page.locator(PILL)).to_have_class("pill live")
    assert page.title().startswith("(13) Tasks")
    assert page.problems == []


def fail_again(task):
    (request,) = [request for request in claimed() if request.task == task.id]
    record([reply_to(request, "rejected")])


def test_failed_task_is_resubmitted_in_two_clicks_or_by_keyboard(here):
    task = new_task("t-1")
    step = in_error(task)
    page = here()
    page.locator(f"main a[href^='/ops/tasks/{task.id}/']").first.click()
    form = page.locator(f"#step-{step.id} form", has=page.locator("[name=reason]")).first
    form.locator("[name=reason]").fill("the bank was called")
    form.locator("button[type=submit]").first.click()
    expect(page.locator("#messages")).to_contain_text("resubmitted")
    fail_again(task)

    page.goto("/ops/")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/ops/tasks/")
    page.keyboard.press("/")
    page.keyboard.type("t-1 state:error\n")
    page.wait_for_url(re.compile("q="))
    page.keyboard.press("j")
    expect(page.locator(f"#open-{task.id}")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"/ops/tasks/{task.id}/"))
    page.keyboard.press("r")
    page.keyboard.type("they say it is well now\n")
    expect(page.locator("#messages")).to_contain_text("resubmitted")
    resubmits = Event.objects.filter(step=step, kind="resubmitted").order_by("id")
    assert list(resubmits.values_list("reason", flat=True)) == [
        "the bank was called",
        "they say it is well now",
    ]

    page.goto("/ops/audit/?actor=operator")
    expect(page.locator("#live")).to_contain_text("they say it is well now")
    page.keyboard.press("?")
    page.locator("#keys-on").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("#q")).not_to_be_focused()
    assert page.problems == []


def test_pages_are_accessible_with_every_dialog_open(here):
    in_error(new_task("t-1"))
    page = here()
    for scheme in ("light", "dark"):
        for width in (1280, 360):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            for path, press in (
                ("/ops/tasks/?q=state:error", ["#s-narrow", "#s-save"]),
                ("/ops/tasks/?q=stp:x&state=nonsense", []),
                ("/ops/audit/", ["[data-keys]"]),
            ):
                page.goto(path)
                for what in press:
                    page.click(what)
                report = Axe().run(page)
                assert report.violations_count == 0, f"{path}: {report.generate_report()}"
                wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                assert page.evaluate(wide) <= 0, (path, width)
