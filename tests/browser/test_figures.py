"""The charts of the overview, and the what-if of a policy, in a real browser."""

import re
from datetime import UTC, datetime

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import expect

from orchestration.console.statistics import rollups
from orchestration.models import Policy
from tests.support.engine import claimed, in_error, new_task, run_to_end, staff
from tests.support.operators import fail

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture
def _history(transactional_db):
    run_to_end(new_task("good-1"))
    in_error(new_task("bad-1"))
    new_task("slow-1")
    fail(claimed())
    staff()
    rollups.count(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


@pytest.mark.usefixtures("_history")
def test_overview_is_accessible_and_fits(here):
    page = here()
    page.goto("/ops/?range=24h")
    expect(page.locator("figure.chart svg")).to_have_count(
        3
    )  # no samples of gates, so no chart of them
    page.get_by_text("Show as table").first.click()
    for scheme, width in (("light", 1280), ("dark", 360)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        report = Axe().run(page)
        assert report.violations_count == 0, report.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.problems == []


@pytest.mark.usefixtures("_history")
def test_range_is_in_the_url_and_a_table_stays_open_on_refresh(here):
    page = here()
    page.get_by_role("link", name="7 days").click()
    expect(page.get_by_role("heading", name="Tasks per 2 hours")).to_be_visible()
    assert "range=7d" in page.url
    page.get_by_text("Show as table").first.click()
    page.get_by_role(
        "heading", name="Overview"
    ).click()  # moves the focus out of the part that is refreshed
    run_to_end(new_task("good-2"))
    rollups.count(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
    table = page.locator("figure.chart").first.get_by_role("table")
    expect(table.get_by_role("cell", name="7", exact=True)).to_be_visible()  # 3 and 4 created
    assert page.problems == []


@pytest.mark.usefixtures("_history")
def test_what_if_follows_the_form_and_saves_nothing(here):
    page = here("admin")
    User.objects.filter(username="admin").update(is_staff=True)
    page.goto("/admin/orchestration/policy/greeter/change/")
    panel = page.locator("#what-if")
    expect(panel).to_contain_text("No difference.")
    page.get_by_label("Failure threshold").fill("1")
    row = panel.get_by_role("row", name="steps in error")
    expect(row).to_contain_text(re.compile(r"0\s+\d+\s+\+\d"))
    page.get_by_label("Failure threshold").fill("0")
    expect(panel).to_contain_text("must be between 1 and 1000")
    assert Policy.objects.get(agent="greeter").failure_threshold == 5
    assert page.problems == []
    report = Axe().run(page, context="#what-if")
    assert report.violations_count == 0, report.generate_report()
