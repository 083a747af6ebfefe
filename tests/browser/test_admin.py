"""The admin's pages that differ from Django's own, or on which Django's own had barriers."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import Group, User

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
