import pytest
from playwright.sync_api import expect

from drill.stack import Stack
from drill.verdict import audited
from tests.browser.people import fill_login, visiting
from tests.support.chromium import launched

expect.set_options(timeout=10_000)


@pytest.fixture(scope="package")
def stack():
    with audited(Stack("browser")) as running:
        yield running


@pytest.fixture(scope="package")
def _async_unsafe():
    """Allow the ORM in this thread, although the browser's driver runs an event loop in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield


@pytest.fixture(scope="package")
def chromium(_async_unsafe):
    with launched() as browser:
        yield browser


@pytest.fixture
def visit(chromium, stack):
    """Return a function that opens a page in a browser context of its own."""
    with visiting(chromium, f"http://localhost:{stack.port}") as visit:
        yield visit


@pytest.fixture
def here(chromium, transactional_db, live_server):
    """Return a function that opens a page as a user in a role, on a server in this process."""
    with visiting(chromium, live_server.url) as visit:

        def open_page(role="operator", **options):
            from django.contrib.auth.models import Group, User

            from tests.support.operators import person

            user = User.objects.filter(username=role).first() or person(role)
            user.groups.add(Group.objects.get(name=role))
            page = visit("/login/?next=/ops/", **options)
            fill_login(page, role, "correct horse")
            return page

        yield open_page
