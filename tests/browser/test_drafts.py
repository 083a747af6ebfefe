"""A form whose session had ended is filled in again after the login, as it was typed."""

import re

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from orchestration.models import Event
from tests.support.engine import in_error, new_task
from tests.support.operators import gave_up, person
from tests.support.second_factor import PASSWORD, with_app

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
WHY = 'Zürich bank <b>repaired</b> it & "more"'
STORED = "sessionStorage.getItem('draft')"


def type_password(page, name):
    page.fill("[name=username]", name)
    page.fill("[name=password]", PASSWORD)
    page.get_by_role("button", name="Log in").click()


def log_in_again(page, name):
    expect(page.locator("[data-ended=form]")).to_be_visible()
    type_password(page, name)


def expect_restored(page):
    notice = page.locator("[data-restored]")
    expect(notice).to_be_focused()
    expect(notice).to_be_in_viewport()
    assert page.evaluate(STORED) is None


def test_form_with_text_and_boxes_is_filled_in_at_its_own_address(here):
    step = gave_up(new_task("t-1"))
    page = here("lead")
    page.goto(f"/ops/steps/{step.id}/change/")
    page.fill("[name=reason]", WHY)
    boxes = page.locator("#content form input[type=checkbox]")
    for box in boxes.all():
        box.check()
    typed = '\n{"to": "<Ada>"}'
    page.locator("textarea").first.fill(typed)
    page.context.clear_cookies()
    page.get_by_role("button", name=re.compile("^Resubmit “")).click()
    page.wait_for_url("**/login/**")
    page.fill("[name=username]", "lead")
    page.fill("[name=password]", "wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_title(re.compile("^Error:"))
    type_password(page, "lead")
    page.wait_for_url("**/change/")
    expect_restored(page)
    expect(page.locator("[name=reason]")).to_have_value(WHY)
    expect(page.locator("textarea").first).to_have_value(typed)
    assert boxes.count()
    for box in boxes.all():
        expect(box).to_be_checked()
    assert not Event.objects.filter(kind="resubmitted").exists()
    page.reload()  # once
    expect(page.locator("[name=reason]")).to_have_value("")
    assert page.problems == []


def test_typed_text_is_filled_in_after_the_second_factor(here):
    step = in_error(new_task("t-1"))
    page = here("operator")
    app = with_app(User.objects.get())
    page.context.clear_cookies()
    before = f"/ops/tasks/{step.task_id}/"
    page.goto(before)
    type_password(page, "operator")
    page.fill("[name=code]", app.code())
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{before}")
    form = page.locator(f"form[action='/ops/steps/{step.id}/resubmit/']")
    form.locator("[name=reason]").fill(WHY)
    page.context.clear_cookies()
    form.evaluate(
        "form => form.dispatchEvent(new Event('submit', {bubbles: true, cancelable: true}))"
    )
    page.get_by_role("button", name="Log in and keep what is typed").click()
    log_in_again(page, "operator")
    page.fill("[name=code]", app.code())
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{before}")
    expect(form.locator("[name=reason]")).to_have_value(WHY)
    expect_restored(page)


def test_form_of_the_admin_is_filled_in_without_its_secrets(here):
    page = here("admin")
    User.objects.update(is_staff=True, is_superuser=True)
    page.goto("/admin/auth/user/add/")
    page.fill("[name=username]", "eve")
    page.fill("[name=password1]", "s3cret-words")
    page.fill("[name=password2]", "s3cret-words")
    assert "eve" in page.evaluate(STORED)
    assert "s3cret" not in page.evaluate(STORED)
    page.context.clear_cookies()
    page.get_by_role("button", name="Save", exact=True).click()
    log_in_again(page, "admin")
    page.wait_for_url("**/user/add/")
    expect(page.locator("[name=username]")).to_have_value("eve")
    expect(page.locator("[name=password1]")).to_have_value("")
    expect(page.locator("[data-restored]")).to_contain_text("Passwords")
    assert not User.objects.filter(username="eve").exists()


def test_choices_of_the_admin_are_filled_in(here):
    page = here("admin")
    User.objects.update(is_staff=True, is_superuser=True)
    page.goto("/admin/auth/group/add/")
    page.fill("[name=name]", "night shift")
    boxes = page.locator("[name=permissions]")
    for n in (0, 4, 8):
        boxes.nth(n).check()
    page.context.clear_cookies()
    page.get_by_role("button", name="Save", exact=True).click()
    log_in_again(page, "admin")
    expect(page.locator("[name=name]")).to_have_value("night shift")
    assert [n for n in range(10) if boxes.nth(n).is_checked()] == [0, 4, 8]


def test_text_that_was_not_sent_is_filled_in(here):
    step = in_error(new_task("t-1"))
    page = here("operator")
    page.goto(f"/ops/steps/{step.id}/resubmit/")
    page.fill("[name=reason]", WHY)
    page.locator("[name=reason]").blur()
    page.evaluate("document.getElementById('signed-out').hidden = false")
    page.context.clear_cookies()
    page.get_by_role("link", name="Log in again").click()
    log_in_again(page, "operator")
    page.wait_for_url("**/resubmit/")
    expect(page.locator("#content form [name=reason]")).to_have_value(WHY)


def test_old_token_fills_the_form_in_without_a_login(here):
    step = in_error(new_task("t-1"))
    page = here("operator")
    page.goto(f"/ops/steps/{step.id}/resubmit/")
    page.fill("[name=reason]", WHY)
    page.context.clear_cookies(name="csrftoken")
    page.get_by_role("button", name=re.compile("^Resubmit")).click()
    page.get_by_role("button", name="Log in and keep what is typed").click()
    expect_restored(page)
    expect(page.locator("#content form [name=reason]")).to_have_value(WHY)
    page.get_by_role("button", name=re.compile("^Resubmit")).click()
    expect(page.locator("#messages")).to_contain_text("resubmitted")
    assert Event.objects.get(kind="resubmitted").reason == WHY


def test_what_was_typed_is_shown_to_no_other_user(here):
    step = in_error(new_task("t-1"))
    page = here("operator")
    bob = person("bob", "operate", "resubmit")
    page.goto(f"/ops/steps/{step.id}/resubmit/")
    page.fill("[name=reason]", WHY)
    page.context.clear_cookies()
    page.get_by_role("button", name=re.compile("^Resubmit")).click()
    page.get_by_role("button", name="Log in and keep what is typed").click()
    log_in_again(page, bob.username)
    page.wait_for_url("**/resubmit/")
    expect(page.locator("#content form [name=reason]")).to_have_value("")
    assert page.evaluate(STORED) is None


def test_form_that_was_carried_out_is_not_filled_in_later(here):
    step = in_error(new_task("t-1"))
    page = here("operator")
    page.goto(f"/ops/steps/{step.id}/resubmit/")
    page.fill("[name=reason]", WHY)
    page.get_by_role("button", name=re.compile("^Resubmit")).click()
    expect(page.locator("#messages")).to_contain_text("resubmitted")
    assert page.evaluate(STORED) is None
