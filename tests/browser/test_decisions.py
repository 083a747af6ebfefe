"""The page of decisions: one is made by keyboard, in its row."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from orchestration import registry
from orchestration.models import Event, Step
from orchestration.payloads.placeholders import field
from orchestration.workflows.step import Step as Declared
from orchestration.workflows.workflow import Workflow
from tests.support.engine import new_task

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


@pytest.fixture
def waiting(monkeypatch, transactional_db):
    """Two tasks that wait for a person."""
    review = Declared(
        name="review", person="fraud", request={"who": field("who"), "cents": 129900}, returns=OK,
        refused={"unclear": "pass"}, remind=[60.0],
    )  # fmt: skip
    workflow = Workflow(name="loan", steps=[review], time_allowed=1e6, contact=field("who"))
    monkeypatch.setitem(registry.workflows, "loan", workflow)
    for name in ("Ada", "Bea"):
        new_task(f"loan-{name}", workflow="loan", data={"who": name})
    return list(Step.objects.filter(process_state="awaiting").order_by("id"))


def test_decision_is_made_by_keyboard(here, waiting):
    first, _second = waiting
    page = here()
    page.keyboard.press("g")
    page.keyboard.press("c")
    expect(page.locator("h1")).to_have_text("Decisions")
    expect(page.locator("#nav-decisions .count")).to_contain_text("2")
    page.keyboard.press("j")
    expect(page.locator(f"#open-{first.id}")).to_be_focused()
    page.keyboard.press("r")
    row = page.locator(f"#decision-{first.id}")
    expect(row.locator("[name=ended][value=done]")).to_be_focused()
    expect(row.locator("[name=code]")).to_be_hidden()
    assert Axe().run(page).response["violations"] == []
    page.keyboard.press("Escape")
    expect(row.locator("form")).to_have_count(0)
    expect(row.get_by_text("Decide…")).to_be_focused()
    page.keyboard.press("Enter")
    expect(row.locator("[name=ended][value=done]")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(row.locator("[name=code]")).to_be_visible()
    expect(row.locator("[name=payload]")).to_be_hidden()
    page.keyboard.press("Tab")
    page.keyboard.type("unclear")
    page.keyboard.press("Tab")
    page.keyboard.type("no answer")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("recorded by you")
    expect(page.locator("#messages")).to_contain_text("“review” was refused (unclear).")
    expect(page.locator("#nav-decisions .count")).to_contain_text("1")
    first.refresh_from_db()
    assert first.process_state == "skipped"
    assert Event.objects.get(step=first, kind="by_hand").reason == "no answer"


def test_mistake_stays_in_the_form(here, waiting):
    step = waiting[0]
    page = here(viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.goto("/ops/decisions/")
    row = page.locator(f"#decision-{step.id}")
    row.get_by_text("Decide…").click()
    row.locator("[name=reason]").fill("I called")
    row.locator("[type=submit]").click()
    expect(row.locator("#id_payload_error")).to_be_visible()
    expect(row.locator("[name=reason]")).to_have_value("I called")
    row.locator("[name=payload]").fill('{"ok": true}')
    row.locator("[type=submit]").click()
    expect(row.locator(".badge.processed")).to_be_visible()
