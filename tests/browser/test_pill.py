"""How a page of the dashboard shows its age, and what it does without an answer.

The tests fail requests in the browser and move the browser's clock, so none of them waits.
"""

import json
import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from drill.waiting import wait_for
from orchestration.models import Step
from tests.support.engine import in_error, new_task

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
POLL = re.compile(r"/ops/tasks/\?.*seen=")
# a backoff without jitter; the times of the polls by the page's clock; the number that ended
WATCH = """
Math.random = () => 0.5;
window.asked = [];
window.done = 0;
addEventListener("htmx:beforeSend", () => asked.push(Date.now() / 1000));
addEventListener("htmx:afterRequest", () => { done += 1; });
"""
ROWS = """[...document.querySelectorAll("#live tbody tr")].map(
  (row) => [row.id, Math.round(row.getBoundingClientRect().top)])"""


@pytest.fixture
def page(here):
    """Return the list of tasks, with a clock that the test moves."""
    for number in range(4):
        in_error(new_task(f"bad-{number}"))
    page = here(viewport={"width": 1280, "height": 800})
    page.clock.install()
    page.add_init_script(WATCH)
    page.goto("/ops/tasks/?q=state:error")
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    expect(page.locator("[data-live-state]")).to_have_class("pill live")
    return page


@pytest.fixture
def pill(page):
    return page.locator("[data-live-state]")


def pass_time(page, seconds):
    """Advance the page's clock; wait for each poll to end."""
    for _ in range(seconds):
        page.clock.run_for(1000)
        wait_for(lambda: page.evaluate("asked.length === done"), "the poll is over", 5)


def test_pill_is_stale_while_a_poll_hangs(page, pill):
    hanging = []
    page.route(POLL, lambda route: hanging.append(route))  # noqa: PLW0108 - a method will not do
    page.clock.run_for(9000)
    expect(pill).to_have_class("pill live")
    page.clock.run_for(4000)
    expect(pill).to_have_text(re.compile(r"^Stale: 1[0-9] s old$"))
    expect(pill).to_have_class("pill stale")
    expect(page.get_by_role("button", name="Refresh")).to_be_visible()
    assert len(hanging) == 1  # not a second one
    page.unroute(POLL)
    pass_time(page, 4)
    expect(pill).to_have_class("pill live")


def test_poll_without_an_answer_times_out_and_is_repeated(page, pill):
    page.route(POLL, lambda route: None)
    live = page.locator("#live")
    patience = json.loads(live.get_attribute("hx-request"))["timeout"]
    assert 10_000 < patience <= 30_000
    # this timeout runs on a clock that a test cannot move
    have_timeout = "(live, timeout) => live.setAttribute('hx-request', JSON.stringify({ timeout }))"
    live.evaluate(have_timeout, 200)
    pass_time(page, 4)
    expect(pill).to_have_class("pill offline")
    live.evaluate(have_timeout, patience)  # a busy machine may answer later than that
    page.unroute(POLL)
    pass_time(page, 7)
    expect(pill).to_have_class("pill live")


def test_polls_back_off_without_a_server_and_recover(page, pill):
    page.route(POLL, lambda route: route.abort("connectionrefused"))
    gone = page.evaluate("Date.now() / 1000")
    pass_time(page, 200)
    expect(pill).to_have_text(re.compile("^Offline: 3 min"))
    expect(pill).to_have_class("pill offline")
    asked = [at for at in page.evaluate("asked") if at > gone]
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert pauses == sorted(pauses)
    assert pauses[0] <= 6
    assert 58 <= pauses[-1] <= 66  # a minute, rounded up to the interval of the polls
    page.unroute(POLL)
    pass_time(page, 66)
    expect(pill).to_have_class("pill live")
    resumed = len(page.evaluate("asked"))
    pass_time(page, 12)
    assert len(page.evaluate("asked")) >= resumed + 3  # at the usual interval again


def test_pill_is_offline_after_a_server_error_and_an_ended_session(page, pill):
    page.route(POLL, lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"))
    pass_time(page, 4)
    expect(pill).to_have_class("pill offline")
    expect(page.locator("h1")).to_have_text("Tasks")
    expect(page.locator("#live tbody tr")).to_have_count(4)  # the rows stay
    expect(page.locator("#signed-out")).to_be_hidden()
    page.unroute(POLL)
    pass_time(page, 7)
    expect(pill).to_have_class("pill live")
    page.context.clear_cookies(name="sessionid")
    pass_time(page, 4)
    login = page.locator("#signed-out").get_by_role("link", name="Log in again")
    expect(login).to_have_attribute(
        "href", "/login/?next=/ops/tasks/%3Fq%3Dstate%3Aerror&ended=form"
    )
    before = len(page.evaluate("asked"))
    pass_time(page, 10)
    assert len(page.evaluate("asked")) == before  # it would be refused


def test_changes_wait_for_the_next_poll_while_a_user_is_busy(page, pill):
    held = []
    page.route(POLL, lambda route: held.append(route))  # noqa: PLW0108 - a method will not do
    page.clock.run_for(3000)
    wait_for(lambda: page.evaluate("asked.length") and held, "it asked", 5)
    Step.objects.update(error_message="it is another one")
    link = page.locator("#live tbody [data-open]").first
    box = link.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 4)
    page.mouse.down()
    held[0].continue_()
    wait_for(lambda: page.evaluate("asked.length === done"), "the poll is over", 5)
    page.mouse.up()
    page.wait_for_url(re.compile("/ops/tasks/[0-9a-f-]{36}/"))

    page.go_back()
    page.unroute(POLL)
    page.route(POLL, lambda route: held.append(route))  # noqa: PLW0108 - as above
    expect(page.locator("#live [title='it is another one']").first).to_be_visible()
    page.clock.run_for(3000)
    wait_for(lambda: page.evaluate("asked.length") and len(held) > 1, "it asked again", 5)
    Step.objects.update(error_message="and yet another")
    page.locator("#live input[name=task]").first.check()
    held[-1].continue_()
    wait_for(lambda: page.evaluate("asked.length === done"), "the poll is over", 5)
    expect(pill).to_have_text("Paused while rows are selected")
    expect(page.locator("#live [title='and yet another']")).to_have_count(0)
    page.unroute(POLL)
    page.click("[data-choose-none]")
    page.locator("h1").click()
    pass_time(page, 4)
    expect(page.locator("#live [title='and yet another']").first).to_be_visible()


def test_refresh_pauses_for_a_dialog_and_never_moves_read_rows(page, pill):
    before = page.evaluate(ROWS)
    in_error(new_task("new-1"))
    pass_time(page, 4)
    expect(page.locator("#fresh")).to_contain_text("1 new")
    assert page.evaluate(ROWS) == before
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(pill).to_have_text("Paused while a dialog is open")
    asked = len(page.evaluate("asked"))
    in_error(new_task("new-2"))
    pass_time(page, 10)
    assert len(page.evaluate("asked")) == asked
    page.keyboard.press("Escape")
    pass_time(page, 4)
    expect(pill).to_have_class("pill live")
    expect(page.locator("#fresh")).to_contain_text("2 new")
    assert page.evaluate(ROWS) == before
    page.click("#fresh")
    expect(page.locator("#live tbody tr")).to_have_count(6)


def test_what_an_act_brings_stays_for_an_interval_although_a_poll_is_due(page, pill):
    wait_for(lambda: pass_time(page, 1) or page.evaluate("asked.length"), "it polls", 20)
    row = page.locator("#live [id^=row-]").first
    name = row.get_attribute("id")
    row.get_by_text("Resubmit…").click()
    row.locator("[name=reason]").fill("the bank was called")
    pass_time(page, 1)
    asked = len(page.evaluate("asked"))
    row.get_by_role("button", name="Resubmit").click()
    row = page.locator(f"#{name}")
    expect(row).to_contain_text("resubmitted by you")
    expect(pill).to_have_class("pill live")
    acted = len(page.evaluate("asked"))
    pass_time(page, 2)  # a poll is due in the first of them
    assert len(page.evaluate("asked")) == acted == asked + 1  # the act alone
    expect(row).to_contain_text("resubmitted by you")
    pass_time(page, 4)
    expect(row).not_to_contain_text("resubmitted by you")  # and the next brings what is so now
