"""The admin's pages that differ from Django's own, or on which Django's own had barriers."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import Group, User

from orchestration import presence, queues
from tests.engine import new_task

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_accounts_and_records_have_no_barrier(here, scheme, width):
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
        found = Axe().run(page)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
        assert page.evaluate(WIDE) <= 0, path


@pytest.mark.parametrize("superuser", [False, True])
def test_what_lies_on_the_queues_is_on_the_system_page(here, superuser):
    """For each who operates, and with nothing that our content security policy refuses."""
    page = here("operator")
    User.objects.update(is_superuser=superuser)
    presence.report("scheduler", "greeter")
    queues.connection().flushdb()
    queues.ring("greeter", [b"one", b"two"])
    assert page.goto("/ops/system/").status == 200
    row = page.get_by_role("row").filter(
        has=page.get_by_role("rowheader", name="greeter", exact=True)
    )
    assert row.get_by_role("cell").all_inner_texts()[:4] == ["1", "0", "2", "1"]
    assert page.locator("a[href*=django]").count() == 0
    assert page.problems == []
