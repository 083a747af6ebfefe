"""The replay beside a policy's form: the typed values applied to recorded attempts."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration.console.statistics import attempt_samples as queries
from orchestration.console.statistics import rollups
from orchestration.models import Attempt, Policy
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.replies import record
from tests.support.engine import claimed, new_task, reply_to
from tests.support.operators import browser, fail, person, press
from tests.support.page import page
from tests.support.policies import VALID

pytestmark = pytest.mark.django_db
PANEL = reverse("admin:orchestration_policy_what_if", args=["greeter"])
FORM = reverse("admin:orchestration_policy_change", args=["greeter"])


def planted(seconds=(0.5, 1.0, 4.0, 8.0)):
    """Record an attempt that succeeded for each of these durations."""
    for length in seconds:
        begun = DatabaseNow() - timedelta(seconds=length)
        Attempt.objects.create(
            step=new_task().steps.get(name="hello"), number=1, generation=1, scheduler="s",
            outcome="done", tries=1, dispatched_at=begun, started_at=begun, ended_at=DatabaseNow(),
        )  # fmt: skip


def ask(client, address=PANEL, **typed):
    return client.post(address, {**VALID, "_what_if": "yes", **typed})


def line_of(response, name) -> list[str]:
    """Return a figure under the saved values, under the typed ones, and the difference."""
    return page(response).only(f'[data-line="{name}"]').texts("td")


def test_shorter_timeout_cuts_off_slower_calls(client):
    planted()
    # as saved, calls may last 3 s
    longer = ask(client, time_allowed="5", call_timeout="5")
    assert line_of(longer, "cut_off") == ["2", "1", "-1"]
    shorter = ask(client, time_allowed="1.5", call_timeout="0.8")
    assert line_of(shorter, "cut_off") == ["2", "3", "+1"]
    sample = page(shorter).only("[data-sample]")
    assert sample.numbers() == [4, 7]  # steps, days
    assert "all 4 steps" in sample.text


def test_lower_threshold_stops_steps_that_recovered(client):
    Policy.objects.filter(agent="greeter").update(backoff=0.01, backoff_cap=0.01)
    new_task()
    fail(claimed(), threshold=5)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE orchestration_step SET run_after = NULL WHERE run_after IS NOT NULL")
    record([reply_to(request) for request in claimed()])
    lower = ask(client, failure_threshold="1")
    assert line_of(lower, "errors") == ["0", "1", "+1"]
    assert line_of(lower, "never_made") == ["0", "1", "+1"]
    same = page(ask(client, failure_threshold="5"))
    assert same.all("[data-line]")
    assert same.all(".differs") == []


def test_failures_of_a_resubmitted_step_are_counted_from_zero(client):
    new_task()
    fail(claimed(), threshold=1)
    step = Attempt.objects.get().step
    press(client, step)
    fail(claimed(), threshold=1)
    assert line_of(ask(client, failure_threshold="1"), "errors") == ["2", "2", ""]
    assert line_of(ask(client, failure_threshold="2"), "errors") == ["2", "0", "-2"]


def test_invalid_values_are_reported(client):
    planted()
    panel = page(ask(client, time_allowed="1", call_timeout="3"))
    assert len(panel.only(".errorlist").all("li")) == 1
    assert panel.all("table") == []


def test_replay_without_javascript_keeps_the_typed_values(client):
    planted()
    response = ask(client, FORM, time_allowed="5", call_timeout="5")
    assert response.status_code == 200
    assert line_of(response, "cut_off") == ["2", "1", "-1"]
    assert page(response).only('[name="time_allowed"]')["value"] == "5.0"
    assert Policy.objects.get(agent="greeter").time_allowed == 10
    assert Policy.history.filter(agent="greeter").count() == 1


def test_replay_saves_nothing(client):
    planted()
    before = Policy.objects.values().get(agent="greeter")
    ask(client, failure_threshold="1")
    assert Policy.objects.values().get(agent="greeter") == before


def test_replay_without_recorded_attempts_is_empty(client):
    panel = page(ask(client))
    assert panel.only("[data-empty]").numbers() == [7]  # days
    assert panel.all("table") == []


def test_replay_requires_the_permission_to_change_the_policy(client):
    viewer = browser(person("vic", "view_policy", is_staff=True))
    assert ask(viewer).status_code == 403
    assert ask(viewer, FORM).status_code == 403
    assert "what-if" not in viewer.get(FORM).text
    assert ask(browser(person("cus"))).status_code == 302
    assert client.get(PANEL).status_code == 405
    unknown = reverse("admin:orchestration_policy_what_if", args=["unknown"])
    assert ask(client, unknown).status_code == 404


def test_large_history_is_sampled_evenly_and_marked_as_a_sample(client, monkeypatch):
    planted([0.5] * 30)
    rollups.count(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(queries, "WHOLE", 10)
    monkeypatch.setattr(queries, "OF_EACH", 7)
    sample = page(ask(client)).only("[data-sample]")
    assert sample.numbers() == [7, 7, 30]  # steps, days, attempts
    assert "a sample of 7 steps" in sample.text


def test_queries_are_independent_of_the_history(client):
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
