"""Operators at work in a real browser: what they read stays put, whatever happens meanwhile.

Named so that it runs after the story, which counts what it finds.
"""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.people import log_in, order
from tests.servers import wait_for

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.timeout(180)]

DECLINED = "pm_card_visa_chargeDeclined"
WHERE = """() => ({
  scroll: window.scrollY,
  focus: document.activeElement.id,
  rows: [...document.querySelectorAll("#live tbody tr")].map(
    (row) => [row.id, Math.round(row.getBoundingClientRect().top)]),
  chosen: [...document.querySelectorAll("input[name=task]:checked")].map((box) => box.value),
})"""
PILL = "[data-live-state]"


def fail_one(visit, stack):
    """Place an order whose payment is refused for good; return the ids of its task and its step."""
    placed = order(visit(), DECLINED)
    failed = (
        "SELECT t.id::text, s.id FROM orchestration_task t JOIN orchestration_step s"
        " ON s.task_id = t.id AND s.process_state = 'error' WHERE t.reference = %s"
    )
    return wait_for(lambda: stack.sql(failed, placed), "the order fails", 20)[0]


@pytest.fixture
def operator(visit, stack):
    page = visit(viewport={"width": 1280, "height": 500})
    log_in(page, stack, "operator")
    return page


def test_a_selection_survives_five_refreshes_and_so_does_the_place(operator, visit, stack):
    stack.place(5, DECLINED)
    stack.quiet()
    operator.goto("/ops/tasks/?q=state:error")
    boxes = operator.locator("input[name=task]")
    wanted = [boxes.nth(at).get_attribute("value") for at in (0, 2, 3)]
    for box in wanted:
        operator.check(f"#pick-{box}")
    expect(operator.locator(PILL)).to_contain_text("Paused while rows are chosen")
    operator.evaluate("window.scrollTo(0, 140)")
    before = operator.evaluate(WHERE)
    assert (before["chosen"], before["focus"]) == (wanted, f"pick-{wanted[-1]}")
    fail_one(visit, stack)  # one more that belongs to this list
    for number in range(5):
        said = f"look {number}"
        stack.sql("UPDATE orchestration_step SET error_message = %s WHERE error_code <> ''", said)
        operator.keyboard.press("u")
        expect(operator.locator("#live tbody")).to_contain_text(said)
        now = operator.evaluate(WHERE)
        assert now == before
    expect(operator.locator("#fresh")).to_contain_text("1 new")
    operator.click("#fresh")
    expect(operator.locator("input[name=task]:checked")).to_have_count(
        3
    )  # it is still the same search
    operator.click("[data-choose-none]")
    expect(operator.locator(PILL)).to_have_text("Live")
    assert operator.problems == []


def test_a_failed_task_is_resubmitted_in_two_clicks_or_by_keys_alone(operator, visit, stack):
    task, step = fail_one(visit, stack)
    attempts = "SELECT attempt FROM orchestration_step WHERE id = %s"

    def tried(times):
        return lambda: stack.sql(attempts, step)[0][0] >= times

    operator.goto("/ops/")
    operator.locator(f"a[href^='/ops/tasks/{task}/']").first.click()
    operator.locator(f"#step-{step} [name=reason]").fill("the bank was called")
    operator.locator(f"#step-{step} button[type=submit]").first.click()
    wait_for(tried(2), "it is tried again after two clicks", 20)
    stack.quiet()

    operator.goto("/ops/")
    for key in ("g", "t"):
        operator.keyboard.press(key)
    operator.wait_for_url("**/ops/tasks/")
    operator.keyboard.press("/")
    operator.keyboard.type(f"{task}\n")
    operator.wait_for_url(re.compile("q="))
    operator.keyboard.press("j")
    expect(operator.locator(f"#open-{task}")).to_be_focused()
    operator.keyboard.press("Enter")
    operator.wait_for_url(re.compile(f"/ops/tasks/{task}/"))
    operator.keyboard.press("r")
    operator.keyboard.type("they say it is well now\n")
    wait_for(tried(3), "it is tried again by keys alone", 20)
    told = "SELECT reason FROM orchestration_event WHERE step_id = %s AND kind = 'resubmitted' ORDER BY id"
    assert stack.sql(told, step) == [("the bank was called",), ("they say it is well now",)]

    operator.goto("/ops/audit/?actor=operator")
    expect(operator.locator("#live")).to_contain_text("they say it is well now")
    operator.keyboard.press("?")
    operator.locator("#keys-on").uncheck()
    operator.keyboard.press("Escape")
    operator.keyboard.press("/")
    expect(operator.locator("#q")).not_to_be_focused()
    assert operator.problems == []


def test_no_page_of_it_has_a_barrier_whatever_is_open(operator):
    for scheme in ("light", "dark"):
        for width in (1280, 360):
            operator.emulate_media(color_scheme=scheme)
            operator.set_viewport_size({"width": width, "height": 800})
            for path, press in (
                ("/ops/tasks/", "s-narrow"),
                ("/ops/tasks/?q=state:error", "s-save"),
                ("/ops/tasks/?q=stp:x&state=nonsense", ""),
                ("/ops/audit/", "keys"),
            ):
                operator.goto(path)
                if press == "keys":
                    operator.locator("[data-keys]").click()
                elif press:
                    operator.click(f"#{press}")
                found = Axe().run(operator)
                assert found.violations_count == 0, f"{path}: {found.generate_report()}"
                wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                assert operator.evaluate(wide) <= 0, (path, width)


def test_what_fails_is_said_and_the_page_comes_back_by_itself(operator, stack):
    operator.goto("/ops/tasks/")
    strip, pill = operator.locator("#health"), operator.locator(PILL)
    stack.manage("stopProcess", "redis")
    try:
        expect(strip).to_contain_text("Redis is down: whatever was accepted is safe")
    finally:
        stack.manage("startProcess", "redis")
    expect(strip).to_be_empty()
    stack.manage("stopProcess", "postgres")
    try:
        expect(pill).to_contain_text("Offline")
        other = operator.context.new_page()
        other.goto("/ops/tasks/")
        expect(other.locator("h1")).to_have_text("The database is away")
    finally:
        stack.manage("startProcess", "postgres")
    expect(pill).to_have_text("Live", timeout=30_000)
    expect(other.locator("h1")).to_have_text("Tasks", timeout=30_000)

    operator.bring_to_front()
    operator.context.clear_cookies()
    expect(operator.locator("#signed-out")).to_be_visible()
    expect(pill).to_contain_text("Offline")
    log_in(other, stack, "operator")
    operator.bring_to_front()
    operator.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(pill).to_have_text("Live")
    expect(operator.locator("#signed-out")).to_be_hidden()
