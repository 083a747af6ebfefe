"""A form whose session had ended: nothing is done, and the login leads back to its page.

The page fills in what was typed: tests/browser/test_drafts.py.
"""

import pytest
from django.test import Client
from django.utils.http import urlencode

from tests.support.engine import in_error, new_task
from tests.support.operators import browser, person
from tests.support.page import POLL, page
from tests.support.second_factor import PASSWORD, with_app

pytestmark = pytest.mark.django_db
OWN = {"Origin": "http://testserver"}
FIELDS = {"attempt": 1, "reason": "Zürich bank <b>repaired</b> it & more"}


@pytest.fixture
def ada():
    return person("ada", "operate", "resubmit", "correct", "acknowledge", "hold")


@pytest.fixture
def step():
    return in_error(new_task("t-1"))


def sent(client, path, fields, *, page_before="", **headers):
    """Send a form as a browser does that is on a page of this site."""
    before = {"Referer": f"http://testserver{page_before}"} if page_before else {}
    return client.post(path, fields, headers={**OWN, **before, **headers})


def log_in(client, shown, user):
    """Log in on the page that a form was answered with."""
    fields = {
        "username": user.get_username(),
        "password": PASSWORD,
        "next": page(shown).only('input[name="next"]')["value"],
    }
    return client.post("/login/", fields, follow=True)


def test_login_leads_back_to_the_page_of_the_form(ada, step):
    client, act = Client(), f"/ops/steps/{step.id}/resubmit/"
    before = f"/ops/tasks/{step.task_id}/"
    answer = sent(client, act, FIELDS, page_before=before)
    assert answer.status_code == 303
    assert answer["Location"] == f"/login/?{urlencode({'next': before, 'ended': 'form'})}"
    shown = client.get(answer["Location"])
    assert page(shown).only('[data-ended="form"]')
    assert "no-store" in shown["Cache-Control"]
    wrong = {"username": "ada", "password": "wrong", "next": before}
    back = log_in(client, client.post("/login/", wrong), ada)
    assert back.request["PATH_INFO"] == before
    step.refresh_from_db()
    assert step.process_state == "error"


def test_login_leads_to_the_forms_own_address_without_a_page_before(step):
    act = f"/ops/steps/{step.id}/change/"
    answer = sent(Client(), act, FIELDS, page_before=act)
    assert answer["Location"] == f"/login/?{urlencode({'next': act, 'ended': 'form'})}"


def test_second_factor_is_asked_for_on_the_way_back(ada, step):
    app = with_app(ada)
    client, before = Client(), f"/ops/tasks/{step.task_id}/"
    answer = sent(client, f"/ops/steps/{step.id}/resubmit/", FIELDS, page_before=before)
    asked = log_in(client, client.get(answer["Location"]), ada)
    assert asked.request["PATH_INFO"] == "/login/code/"
    again = sent(client, f"/ops/steps/{step.id}/resubmit/", FIELDS, page_before=before)
    assert again["Location"] == f"/login/code/?{urlencode({'next': before, 'ended': 'form'})}"
    assert page(client.get(again["Location"])).only('[data-ended="form"]')
    to = page(asked).only('[name="next"]')["value"]
    back = client.post("/login/code/", {"code": app.code(), "next": to}, follow=True)
    assert back.request["PATH_INFO"] == before


def test_form_of_a_session_that_was_idle_is_not_carried_out(ada, step, settings):
    settings.STAFF_IDLE_MINUTES = 30
    client = browser(ada)
    client.get("/ops/")
    session = client.session
    session["staff"] = {**session["staff"], "seen": 0}
    session.save()
    answer = sent(client, f"/ops/steps/{step.id}/resubmit/", FIELDS)
    assert answer["Location"].startswith("/login/?")
    step.refresh_from_db()
    assert step.process_state == "error"


def test_form_with_an_old_token_leads_back_without_a_login(ada, step):
    """All cookies are of a later login, in another tab."""
    client, act = Client(enforce_csrf_checks=True), f"/ops/steps/{step.id}/resubmit/"
    client.force_login(ada, backend="django.contrib.auth.backends.ModelBackend")
    fields = {**FIELDS, "csrfmiddlewaretoken": "x" * 64}
    before = f"/ops/tasks/{step.task_id}/"
    in_place = sent(client, act, fields, page_before=before, **POLL)
    assert (in_place.status_code, in_place.content) == (401, b"")
    answer = sent(client, act, fields, page_before=before)
    assert (answer.status_code, answer["Location"]) == (303, before)
    assert page(client.get(before)).only(".strip.ended")  # by which the page fills its form in
    step.refresh_from_db()
    assert step.process_state == "error"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", ""])
def test_form_of_another_site_is_refused(ada, step, origin):
    act = f"/ops/steps/{step.id}/resubmit/"
    headers = {"Origin": origin} if origin else {}
    shown = Client().post(act, FIELDS, headers=headers)
    assert (shown.status_code, shown["Location"]) == (302, "/login/?next=/ops/")
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada, backend="django.contrib.auth.backends.ModelBackend")
    refused = client.post(act, FIELDS, headers=headers)
    assert refused.status_code == 403
    assert page(refused).only('[data-refused="csrf"]')
