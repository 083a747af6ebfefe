import pytest
from playwright.sync_api import expect

from drill.stack import Stack
from tests.browser.people import fill_login, visiting
from tests.chromium import launched

expect.set_options(timeout=10_000)


@pytest.fixture(scope="package")
def stack():
    running = Stack("browser").start()
    yield running
    running.stop()


@pytest.fixture(scope="package")
def _beside_a_loop():
    """The browser's driver keeps an event loop in this thread, which Django takes for its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield


@pytest.fixture(scope="package")
def chromium(_beside_a_loop):
    with launched() as browser:
        yield browser


@pytest.fixture
def visit(chromium, stack):
    """Return a function that opens a page of its own, for one more person."""
    with visiting(chromium, f"http://localhost:{stack.port}") as visit:
        yield visit


@pytest.fixture
def here(chromium, transactional_db, live_server):
    """Return a function that opens a page as somebody in a role, on a server in this process."""
    with visiting(chromium, live_server.url) as visit:

        def open_page(role="operator", **options):
            from django.contrib.auth.models import Group, User

            from tests.operators import person

            user = User.objects.filter(username=role).first() or person(role)
            user.groups.add(Group.objects.get(name=role))
            page = visit("/login/?next=/ops/", **options)
            fill_login(page, role, "correct horse")
            return page

        yield open_page
