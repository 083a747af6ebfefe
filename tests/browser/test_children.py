"""The children of a step, on the page of its task: seen, listed, and left again for their parent."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from orchestration.models import Task
from orchestration.transitions.replies import record
from tests.support import children
from tests.support.engine import reply_to

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(180),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def order(monkeypatch):
    """A task with thirty children, one of them in error."""
    children.declare(monkeypatch)
    order, requests = children.begun(30, "A")
    record([reply_to(request) for request in requests[:20]])
    record([reply_to(requests[25], "rejected")])
    return order


def test_children_are_seen_from_their_task_and_it_from_them(here, order):
    failed = Task.objects.get(reference="A/parcels/25")
    page = here()
    page.goto(f"{page.url.partition('/ops')[0]}/ops/tasks/{order.id}/")
    card = page.locator("[data-children]")
    expect(card.locator("[data-fact=children]")).to_have_text("30")
    expect(card.locator("[data-child]")).to_have_count(20)
    expect(card.locator("[data-child]").first).to_have_attribute("data-child", str(failed.id))
    assert Axe().run(page).response["violations"] == []
    card.get_by_text("All children").click()
    expect(page.locator("tr a", has_text="A/parcels/").first).to_be_visible()
    page.goto(f"{page.url.partition('/ops')[0]}/ops/tasks/{failed.id}/")
    page.locator("[data-fact=parent]").click()
    expect(page.locator("h1")).to_contain_text("A")
    expect(page.locator("[data-children]")).to_be_visible()
