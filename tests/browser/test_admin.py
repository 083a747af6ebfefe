"""The admin's own pages, and Django's where they were not accessible."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import Group, User

from orchestration.cluster import heartbeat
from orchestration.messaging import queues
from tests.support.engine import new_task

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_admin_pages_are_accessible(here, scheme, width):
    page = here("admin", color_scheme=scheme, viewport={"width": width, "height": 800})
    User.objects.update(is_staff=True, is_superuser=True)
    user, group, task = User.objects.get(), Group.objects.get(name="lead"), new_task()
    for path in (
        f"auth/user/{user.pk}/change/",
        f"auth/group/{group.pk}/change/",
        "orchestration/task/?q=t",
        f"orchestration/task/{task.pk}/history/",
    ):
        assert page.goto(f"/admin/{path}").status == 200
        report = Axe().run(page)
        assert report.violations_count == 0, f"{path}: {report.generate_report()}"
        assert page.evaluate(WIDE) <= 0, path


@pytest.mark.parametrize("superuser", [False, True])
def test_system_page_shows_the_queue_depths(here, superuser):
    """With and without superuser rights, without a violation of the content security policy."""
    page = here("operator")
    User.objects.update(is_superuser=superuser)
    heartbeat.report("scheduler", "greeter")
    queues.connection().flushdb()
    queues.ring("greeter", [b"one", b"two"])
    assert page.goto("/ops/system/").status == 200
    row = page.get_by_role("row").filter(
        has=page.get_by_role("rowheader", name="greeter", exact=True)
    )
    assert row.get_by_role("cell").all_inner_texts()[:4] == ["1", "0", "2", "1"]
    assert page.locator("a[href*=django]").count() == 0
    assert page.problems == []
