"""Starting a task by hand, in a browser."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from orchestration import submission
from orchestration.models import Task

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def test_task_is_started_by_hand_and_its_page_opens_by_itself(here):
    page = here(viewport={"width": 360, "height": 700}, color_scheme="dark")
    page.goto("/ops/workflows/")
    page.locator("a[href='/ops/workflows/greet/start/']").click()
    assert Axe().run(page).response["violations"] == []
    page.get_by_label("name").fill('"Ada"')
    page.get_by_label("Reason").fill("to see")
    page.get_by_role("button", name="Start").click()
    expect(page.locator('[data-submission="waiting"]')).to_be_visible()
    assert Axe().run(page).response["violations"] == []
    submission.take(10)
    task = Task.objects.get(workflow="greet")
    page.wait_for_url(f"**/ops/tasks/{task.id}/", timeout=20_000)
    expect(page.locator("[data-started-by]")).to_have_attribute("data-started-by", "operator")
    assert page.problems == []
