"""The staff's login in a browser: the second factor, and a session that ends over a form."""

import re
import time

import pytest
from playwright.sync_api import expect

from orchestration.models import Event
from sasweb.session_store import SessionStore
from tests.browser.people import check, type_password, visiting
from tests.support.engine import in_error, new_task
from tests.support.operators import person
from tests.support.second_factor import App

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
WHY = "the bank is repaired & answers"


def test_second_factor_is_set_up_and_asked_for(chromium, transactional_db, live_server, settings):
    settings.SECOND_FACTOR = True
    person("ada", "operate")
    with visiting(chromium, live_server.url) as visit:
        page = visit("/ops/agents/")
        check(page)
        type_password(page, "ada")
        page.wait_for_url("**/login/second-factor/**")
        check(page)
        page.get_by_role("link", name="Set up an app").click()
        code = page.locator("img")
        expect(code).to_be_visible()
        assert code.evaluate("image => image.naturalWidth") > 100
        check(page)
        app = App.typed(page.locator("[data-secret]").inner_text())
        page.fill("[name=code]", app.code())
        page.get_by_role("button", name="Turn it on").click()
        expect(page.locator("[data-recovery-codes] li")).to_have_count(10)
        check(page)
        page.get_by_role("link", name="Go on").click()
        page.wait_for_url("**/ops/agents/")
        page.get_by_role("link", name="ada").click()
        expect(page.locator("[data-factor=on]")).to_be_visible()
        check(page)
        assert page.problems == []

        page = visit("/ops/agents/")
        type_password(page, "ada")
        page.wait_for_url("**/login/code/**")
        check(page)
        page.fill("[name=code]", app.code())
        page.keyboard.press("Enter")
        page.wait_for_url("**/ops/agents/")
        assert page.problems == []


def test_user_is_warned_before_the_session_ends_and_stays(here, settings):
    page = here(viewport={"width": 1280, "height": 800})
    settings.STAFF_IDLE_MINUTES = 30
    page.goto("/ops/agents/")
    warning = page.locator("#session-ends")
    expect(warning).to_be_hidden()
    (cookie,) = (
        row for row in page.context.cookies() if row["name"] == settings.SESSION_COOKIE_NAME
    )
    session = SessionStore(cookie["value"])
    session["staff"] = {**session["staff"], "seen": time.time() - 29 * 60}
    session.save()
    expect(warning).to_be_visible()
    check(page)
    page.get_by_role("button", name="Stay logged in").click()
    expect(warning).to_be_hidden()
    assert SessionStore(cookie["value"])["staff"]["seen"] > time.time() - 60
    assert page.problems == []


def test_form_survives_the_end_of_the_session_while_it_is_typed(here):
    step = in_error(new_task("bad-1"))
    page = here(viewport={"width": 1280, "height": 800})
    page.clock.install()
    page.goto("/ops/tasks/?q=state:error")
    page.locator(f"#row-{step.task_id}").get_by_text("Resubmit…").click()
    reason = page.locator("#live [name=reason]")
    reason.fill(WHY)
    page.context.clear_cookies()  # the token against forged forms, too
    page.clock.pause_at(page.evaluate("Date.now() + 35000"))  # the polls of that time are asked
    page.clock.resume()
    expect(page.locator("#signed-out")).to_be_visible()
    expect(reason).to_have_value(WHY)
    page.get_by_role("button", name=re.compile("^Resubmit “")).click()
    page.get_by_role("button", name="Log in and keep what is typed").click()
    expect(page.locator("[data-ended=form]")).to_be_visible()
    check(page)
    type_password(page, "operator")
    form = page.locator("#content form[data-opened]")
    expect(form.locator("[name=reason]")).to_have_value(WHY)
    expect(page.locator("[data-restored]")).to_be_focused()
    expect(page.locator("[data-restored]")).to_be_in_viewport()
    assert not Event.objects.filter(kind="resubmitted").exists()
    check(page)
    form.get_by_role("button", name=re.compile("^Resubmit")).click()
    expect(page.locator("#messages")).to_contain_text("resubmitted")
    assert Event.objects.get(kind="resubmitted").reason == WHY
