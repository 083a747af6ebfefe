"""Beside a policy's form: what the values typed in would have done to what was recorded."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration.models import Attempt, Policy
from orchestration.models.fields import DatabaseNow
from orchestration.queries import past as queries
from orchestration.transitions.record import record
from tests.engine import claimed, new_task, reply_to
from tests.integration.test_admin_settings import VALID
from tests.operators import browser, fail, person, press, words

pytestmark = pytest.mark.django_db
PANEL = reverse("admin:orchestration_policy_what_if", args=["greeter"])
FORM = reverse("admin:orchestration_policy_change", args=["greeter"])


@pytest.fixture
def client():
    return browser(person("ada", is_staff=True, is_superuser=True))


def planted(seconds=(0.5, 1.0, 4.0, 8.0)):
    """One attempt that was done for each of these lengths."""
    for length in seconds:
        begun = DatabaseNow() - timedelta(seconds=length)
        Attempt.objects.create(
            step=new_task().steps.get(name="hello"), number=1, generation=1, scheduler="s",
            outcome="done", tries=1, dispatched_at=begun, started_at=begun, ended_at=DatabaseNow(),
        )  # fmt: skip


def ask(client, address=PANEL, **typed):
    return client.post(address, {**VALID, "_what_if": "yes", **typed})


def test_a_shorter_time_cuts_off_what_took_longer(client):
    planted()
    page = words(ask(client, time_allowed="5", call_timeout="5"))
    assert re.search(r"cut off[^0-9]+2 1 -1", page)  # as saved, calls may last 3 s
    page = words(ask(client, time_allowed="1.5", call_timeout="0.8"))
    assert re.search(r"cut off[^0-9]+2 3 \+1", page)
    assert "All 4 steps whose first attempt ended in the last 7 days." in page


def test_a_lower_threshold_stops_what_had_healed(client):
    Policy.objects.filter(agent="greeter").update(backoff=0.01, backoff_cap=0.01)
    new_task()
    fail(claimed(), threshold=5)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE orchestration_step SET run_after = NULL WHERE run_after IS NOT NULL")
    record([reply_to(request) for request in claimed()])
    page = words(ask(client, failure_threshold="1"))
    assert re.search(r"steps stopped in error 0 1 \+1", page)
    assert re.search(r"would never have been made 0 1 \+1", page)
    assert "No difference." in words(ask(client, failure_threshold="5"))


def test_a_resubmitted_step_begins_afresh(client):
    new_task()
    fail(claimed(), threshold=1)
    step = Attempt.objects.get().step
    press(client, step)
    fail(claimed(), threshold=1)
    assert re.search(r"steps stopped in error 2 2", words(ask(client, failure_threshold="1")))
    assert re.search(r"steps stopped in error 2 0 -2", words(ask(client, failure_threshold="2")))


def test_values_that_make_no_sense_are_said_so(client):
    planted()
    page = words(ask(client, time_allowed="1", call_timeout="3"))
    assert "at least as long as one call may take" in page
    assert "as saved" not in page


def test_without_javascript_the_form_comes_back_with_what_was_typed(client):
    planted()
    response = ask(client, FORM, time_allowed="5", call_timeout="5")
    assert response.status_code == 200
    assert re.search(r"cut off[^0-9]+2 1 -1", words(response))
    assert 'name="time_allowed" value="5.0"' in response.text
    assert Policy.objects.get(agent="greeter").time_allowed == 10
    assert Policy.history.filter(agent="greeter").count() == 1


def test_asking_saves_nothing(client):
    planted()
    before = Policy.objects.values().get(agent="greeter")
    ask(client, failure_threshold="1")
    assert Policy.objects.values().get(agent="greeter") == before


def test_nothing_recorded_is_said(client):
    assert "was not asked for anything in the last 7 days" in words(ask(client))


def test_only_who_may_change_the_policy_may_ask(client):
    viewer = browser(person("vic", "view_policy", is_staff=True))
    assert ask(viewer).status_code == 403
    assert ask(viewer, FORM).status_code == 403
    assert "what-if" not in viewer.get(FORM).text
    assert ask(browser(person("cus"))).status_code == 302
    assert client.get(PANEL).status_code == 405
    nobody = reverse("admin:orchestration_policy_what_if", args=["nobody"])
    assert ask(client, nobody).status_code == 404


def test_a_large_past_is_sampled_from_all_its_time_and_told_so(client, monkeypatch):
    planted([0.5] * 30)
    from orchestration import rollups
    from tests.integration.test_rollups import END, START

    rollups.count(START, END)
    monkeypatch.setattr(queries, "WHOLE", 10)
    monkeypatch.setattr(queries, "OF_EACH", 7)
    page = words(ask(client))
    assert re.search(r"A sample of 7 steps, from every half hour .* greeter had 30 attempts", page)


def test_the_number_of_queries_does_not_depend_on_the_past(client):
    def queries_of_one():
        with CaptureQueriesContext(connection) as seen:
            ask(client)
        return len(seen)

    new_task()
    fail(claimed())
    ask(client)
    before = queries_of_one()
    for _ in range(5):
        new_task()
        fail(claimed())
    assert queries_of_one() == before
