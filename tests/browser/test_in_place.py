"""Acts on rows of the dashboard in a real browser: in place, by keys, and without JavaScript."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from orchestration import incidents
from orchestration.models import Event, Hold, Step
from tests.engine import in_error, new_task
from tests.operators import operator, press

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOADS = "performance.getEntriesByType('navigation').length + performance.timeOrigin"
PILL = "[data-live-state]"


def two_failed():
    steps = [in_error(new_task(f"bad-{number}")) for number in range(2)]
    incidents.fold("supervisor-1")
    return [Step.objects.get(id=step.id) for step in steps]


def reasons(step):
    return list(
        Event.objects.filter(step=step, kind="resubmitted").values_list("reason", flat=True)
    )


def test_on_a_narrow_page_a_press_opens_the_form_and_keys_close_and_open_it(here):
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
    page.keyboard.press("Enter")  # without a reason: the browser says so, and nothing is sent
    assert not reason.evaluate("field => field.validity.valid")
    reason.evaluate("field => { field.form.noValidate = true; }")
    page.keyboard.press("Enter")  # where it does not, the server does
    expect(row.locator(".wrong")).to_contain_text("Say why")
    expect(reason).to_be_focused()
    assert reasons(step) == []


@pytest.mark.parametrize("table", ["overview", "tasks", "incident"])
def test_a_row_is_resubmitted_where_it_stands(here, table):
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
    expect(page.locator(PILL)).to_have_text("Live")
    assert page.title().startswith("(1) ")
    assert page.evaluate(LOADS) == loaded
    assert reasons(step) == ["the bank was called"]
    assert page.problems == []


def test_by_keys_alone_and_back(here):
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
    """Return what answers a request with an error, or breaks its connection."""
    return lambda route: route.fulfill(status=status) if status else route.abort()


def test_what_cannot_be_done_is_said_in_the_row(here):
    step, other = two_failed()
    page = here()
    page.goto("/ops/")
    row = page.locator(f"#failed-{step.id}")
    row.get_by_text("Resubmit…").click()
    row.locator("[name=reason]").fill("typed at three")
    said = row.locator("[role=alert]")
    for status, words in ((503, "database is away"), (403, "may not"), (0, "No answer came")):
        page.route("**/resubmit/**", answering(status))
        row.get_by_role("button").click()
        expect(said).to_contain_text(words)
        expect(row.locator("[name=reason]")).to_have_value("typed at three")
        page.unroute("**/resubmit/**")
    assert reasons(step) == []
    press(operator("bob"), step, reason="I was first")
    row.get_by_role("button").click()
    expect(said).to_contain_text("bob")
    expect(said).to_contain_text("I was first")
    expect(said).to_be_focused()
    expect(row.locator("[name=reason]")).to_have_count(0)
    assert reasons(step) == ["I was first"]
    page.locator(f"#failed-{other.id}").get_by_text("Resubmit…").click()
    expect(page.locator("[name=reason]")).to_be_focused()


def test_a_task_is_held_released_and_resubmitted_on_its_page(here):
    step, _ = two_failed()
    page = here()
    page.goto(f"/ops/tasks/{step.task_id}/")
    loaded = page.evaluate(LOADS)
    for act, badge in (("Hold", 1), ("Release", 0)):
        page.get_by_role("link", name=f"{act}…", exact=True).click()
        page.locator("#act").get_by_label("Why").fill("one moment")
        page.locator("#act").get_by_role("button", name=act).click()
        expect(page.locator(".ops-now").get_by_text("held", exact=True)).to_have_count(badge)
        expect(page.locator("#act [name=reason]")).to_have_count(0)
    assert Hold.objects.get(task=step.task_id).until is not None
    page.get_by_role("button", name="I take care of it").click()
    expect(page.locator("#messages")).to_contain_text("You take care of it")
    page.locator(f"#reason-{step.id}").fill("the bank was called")
    page.get_by_role("button", name="Resubmit “hello”").click()
    expect(page.locator(".ops-now .badge").first).to_have_text("processing")
    expect(page.locator("#nav-tasks .count")).to_contain_text("1")
    assert page.evaluate(LOADS) == loaded
    assert page.problems == []


def test_an_incident_is_taken_and_assigned_on_its_page(here):
    step, _ = two_failed()
    page = here()
    page.goto(f"/ops/incidents/{step.incident_id}/")
    loaded = page.evaluate(LOADS)
    page.get_by_role("button", name="I take care of it").click()
    expect(page.locator(".ops-now")).to_contain_text("operator takes care of it")
    page.locator("#s-assign").click()
    page.locator("#assign_to").select_option(label="operator")
    page.get_by_role("button", name="Assign").click()
    expect(page.locator("#messages")).to_contain_text("operator sees to it")
    assert page.evaluate(LOADS) == loaded
    assert page.problems == []


def test_without_javascript_the_same_leads_to_the_page_of_the_task(here):
    step, _ = two_failed()
    page = here(java_script_enabled=False)
    page.goto("/ops/")
    page.locator(f"#failed-{step.id}").get_by_text("Resubmit…").click()
    page.wait_for_url(re.compile(f"/ops/tasks/{step.task_id}/#step-{step.id}"))
    page.locator(f"#reason-{step.id}").fill("the bank was called")
    page.get_by_role("button", name="Resubmit “hello”").click()
    expect(page.locator("#messages")).to_contain_text("“hello” was resubmitted.")
    assert reasons(step) == ["the bank was called"]
