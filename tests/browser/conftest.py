import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from drill.stack import Stack

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
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
    program = shutil.which("chromium")
    assert program, "Chromium is needed: sudo apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, stack):
    """Return a function that opens a page of its own, for one more person."""
    contexts = []

    def visit(path="/", **options):
        base = f"http://localhost:{stack.port}"
        contexts.append(chromium.new_context(base_url=base, **options))
        page = contexts[-1].new_page()
        page.problems = []
        page.on("console", lambda said: said.type == "error" and page.problems.append(said.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.goto(path)
        return page

    yield visit
    for context in contexts:
        context.close()


@pytest.fixture
def here(chromium, transactional_db, live_server):
    """Return a function that opens a page as somebody in a role, on a server in this process."""
    contexts = []

    def open_page(role="operator", **options):
        from django.contrib.auth.models import Group, User

        from tests.operators import person

        user = User.objects.filter(username=role).first() or person(role)
        user.groups.add(Group.objects.get(name=role))
        contexts.append(chromium.new_context(base_url=live_server.url, **options))
        page = contexts[-1].new_page()
        page.problems = []
        page.on("console", lambda said: said.type == "error" and page.problems.append(said.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.goto("/login/?next=/ops/")
        page.fill("[name=username]", role)
        page.fill("[name=password]", "correct horse")
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/ops/")
        return page

    yield open_page
    for context in contexts:
        context.close()
