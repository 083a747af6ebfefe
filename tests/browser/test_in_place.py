"""Actions on rows of the dashboard: in place, by keyboard, and without JavaScript."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from orchestration.incidents import aggregation
from orchestration.models import Event, Hold, Step
from tests.support.engine import in_error, new_task
from tests.support.operators import operator, press

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOADS = "performance.getEntriesByType('navigation').length + performance.timeOrigin"
PILL = "[data-live-state]"


def two_failed():
    steps = [in_error(new_task(f"bad-{number}")) for number in range(2)]
    aggregation.aggregate("supervisor-1")
    return [Step.objects.get(id=step.id) for step in steps]


def reasons(step):
    return list(
        Event.objects.filter(step=step, kind="resubmitted").values_list("reason", flat=True)
    )


def test_form_opens_by_click_and_by_keyboard_on_a_narrow_page(here):
    step, _ = two_failed()
    page = here(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto("/ops/tasks/?q=state:error")
    row = page.locator(f"#row-{step.task_id}")
    row.get_by_text("Resubmit…").click()
    reason = row.locator("[name=reason]")
    expect(reason).to_be_focused()
    expect(reason).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(reason).to_have_count(0)
    expect(row.get_by_text("Resubmit…")).to_be_focused()
    page.keyboard.press("Enter")
    expect(reason).to_be_focused()
    page.keyboard.press("Enter")  # without a reason the browser sends nothing
    assert not reason.evaluate("field => field.validity.valid")
    reason.evaluate("field => { field.form.noValidate = true; }")
    page.keyboard.press("Enter")  # without the browser's check, the server refuses
    expect(row.locator(".wrong")).to_be_visible()
    expect(reason).to_be_focused()
    assert reasons(step) == []


@pytest.mark.parametrize("table", ["overview", "tasks", "incident"])
def test_row_is_resubmitted_without_a_page_load(here, table):
    step, _ = two_failed()
    page = here()
    path, row = {
        "overview": ("/ops/", f"#failed-{step.id}"),
        "tasks": ("/ops/tasks/?q=state:error", f"#row-{step.task_id}"),
        "incident": (f"/ops/incidents/{step.incident_id}/", f"#hit-{step.id}"),
    }[table]
    page.goto(path)
    loaded = page.evaluate(LOADS)
    expect(page.locator("#nav-tasks .count")).to_contain_text("2")
    page.locator(row).get_by_text("Resubmit…").click()
    reason = page.locator(row).locator("[name=reason]")
    expect(reason).to_be_focused()
    page.locator("h1").click()
    expect(page.locator(PILL)).to_contain_text("Paused while a form is open")
    assert Axe().run(page).response["violations"] == []
    reason.fill("the bank was called")
    button = page.locator(row).get_by_role("button", name="Resubmit “hello”")
    button.dblclick()
    expect(page.locator(row)).to_contain_text("resubmitted by you")
    expect(page.locator("#nav-tasks .count")).to_contain_text("1")
    expect(page.locator("#messages")).to_contain_text("“hello” was resubmitted.")
    expect(page.locator(PILL)).to_have_class("pill live")
    assert page.title().startswith("(1) ")
    assert page.evaluate(LOADS) == loaded
    assert reasons(step) == ["the bank was called"]
    assert page.problems == []


def test_row_is_resubmitted_by_keyboard(here):
    step, _ = two_failed()
    page = here()
    page.goto("/ops/tasks/?q=bad-0")
    page.keyboard.press("j")
    expect(page.locator(f"#open-{step.task_id}")).to_be_focused()
    page.keyboard.press("r")
    reason = page.locator("[name=reason]")
    expect(reason).to_be_focused()
    page.keyboard.type("they say it is well now\n")
    expect(page.locator(f"#row-{step.task_id}")).to_contain_text("resubmitted by you")
    expect(page.locator(f"#open-{step.task_id}")).to_be_focused()
    assert reasons(step) == ["they say it is well now"]


def answering(status):
    """Return a route handler that answers with a status, or breaks the connection if it is 0."""
    return lambda route: route.fulfill(status=status) if status else route.abort()


def test_refusal_and_conflict_appear_in_the_row(here):
    step, other = two_failed()
    page = here()
    page.goto("/ops/")
    row = page.locator(f"#failed-{step.id}")
    row.get_by_text("Resubmit…").click()
    row.locator("[name=reason]").fill("typed at three")
    alert = row.locator("[role=alert]")
    for status, words in ((503, "database"), (403, "permission"), (0, "did not answer")):
        page.route("**/resubmit/**", answering(status))
        row.get_by_role("button").click()
        expect(alert).to_contain_text(words)
        expect(row.locator("[name=reason]")).to_have_value("typed at three")
        page.unroute("**/resubmit/**")
    assert reasons(step) == []
    press(operator("bob"), step, reason="I was first")
    row.get_by_role("button").click()
    expect(alert).to_contain_text("bob")
    expect(alert).to_contain_text("I was first")
    expect(alert).to_be_focused()
    expect(row.locator("[name=reason]")).to_have_count(0)
    assert reasons(step) == ["I was first"]
    page.locator(f"#failed-{other.id}").get_by_text("Resubmit…").click()
    expect(page.locator("[name=reason]")).to_be_focused()


def test_task_is_held_released_and_resubmitted_without_a_page_load(here):
    step, _ = two_failed()
    page = here()
    page.goto(f"/ops/tasks/{step.task_id}/")
    loaded = page.evaluate(LOADS)
    for act, badge in (("Hold", 1), ("Release", 0)):
        page.get_by_role("link", name=f"{act}…", exact=True).click()
        page.locator("#act").get_by_label("Reason").fill("one moment")
        page.locator("#act").get_by_role("button", name=act).click()
        expect(page.locator(".ops-now").get_by_text("held", exact=True)).to_have_count(badge)
        expect(page.locator("#act [name=reason]")).to_have_count(0)
    assert Hold.objects.get(task=step.task_id).until is not None
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("#messages")).to_contain_text("You acknowledged")
    page.locator(f"#reason-{step.id}").fill("the bank was called")
    page.get_by_role("button", name="Resubmit “hello”").click()
    expect(page.locator(".ops-now .badge").first).to_have_text("processing")
    expect(page.locator("#nav-tasks .count")).to_contain_text("1")
    assert page.evaluate(LOADS) == loaded
    assert page.problems == []


def test_incident_is_acknowledged_and_assigned_without_a_page_load(here):
    step, _ = two_failed()
    page = here()
    page.goto(f"/ops/incidents/{step.incident_id}/")
    loaded = page.evaluate(LOADS)
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".ops-now")).to_have_attribute("data-acknowledged-by", "operator")
    page.locator("#s-assign").click()
    page.locator("#assign_to").select_option(label="operator")
    page.get_by_role("button", name="Assign").click()
    expect(page.locator("#messages")).to_contain_text("assigned to operator")
    assert page.evaluate(LOADS) == loaded
    assert page.problems == []


def test_resubmit_link_leads_to_the_task_without_javascript(here):
    step, _ = two_failed()
    page = here(java_script_enabled=False)
    page.goto("/ops/")
    page.locator(f"#failed-{step.id}").get_by_text("Resubmit…").click()
    page.wait_for_url(re.compile(f"/ops/tasks/{step.task_id}/#step-{step.id}"))
    page.locator(f"#reason-{step.id}").fill("the bank was called")
    page.get_by_role("button", name="Resubmit “hello”").click()
    expect(page.locator("#messages")).to_contain_text("“hello” was resubmitted.")
    assert reasons(step) == ["the bank was called"]
