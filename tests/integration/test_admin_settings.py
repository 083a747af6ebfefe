"""Admins adjust thresholds: bounds are sentences, and the history says who, when, from what to what."""

import re

import pytest
from django.urls import reverse

from orchestration.models import FairnessWeight, Policy, SupervisorPolicy
from tests.operators import browser, person, words

pytestmark = pytest.mark.django_db

VALID = {
    "time_allowed": "10",
    "call_timeout": "3",
    "tries": "2",
    "failure_threshold": "5",
    "backoff": "1",
    "backoff_cap": "60",
    "window": "100",
    "aged_after": "60",
    "past_threshold": "error",
    "extended_wait": "600",
    "rounds": "3",
    "on_rejection": "error",
    "mend_within": 1800,
    "undo_threshold": "20",
    "key_memory": "",
    "rate": "",
    "breaker_calls": "20",
    "breaker_failures": "5",
    "breaker_share": "0.5",
    "breaker_pause": "5",
    "breaker_pause_cap": "60",
}
SUPERVISOR = {
    "oldest_waiting": "300",
    "undo_stuck": "900",
    "status_undelivered": "300",
    "audit_every": "3600",
}


@pytest.fixture
def client():
    return browser(person("ada", is_staff=True, is_superuser=True))


def address(page, row, name="policy"):
    return reverse(f"admin:orchestration_{name}_{page}", args=[row])


def save(client, **changes):
    return client.post(address("change", "greeter"), {**VALID, **changes})


def test_a_threshold_is_adjusted_and_holds_at_once(client):
    assert save(client, failure_threshold="7").status_code == 302
    assert Policy.objects.get(agent="greeter").failure_threshold == 7


def test_the_history_says_who_when_from_what_to_what(client):
    save(client, failure_threshold="7", window="20")
    save(browser(person("bea", is_staff=True, is_superuser=True)), failure_threshold="7")
    page = client.get(address("history", "greeter"))
    story = words(page)
    moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    assert re.search(rf"{moment} bea Window : 20 → 100", story)
    assert re.search(rf"{moment} ada .*Failure threshold : 5 → 7 .*Window : 100 → 20", story)
    assert re.search(rf"{moment} the system made, with the defaults", story)
    assert "Updated at" not in story
    assert " style=" not in page.text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"failure_threshold": "0"}, "The failure threshold must be between 1 and 1000"),
        ({"failure_threshold": "1001"}, "The failure threshold must be between 1 and 1000"),
        ({"failure_threshold": "-1"}, "greater than or equal to 0"),
        ({"failure_threshold": "many"}, "Enter a whole number"),
        ({"failure_threshold": ""}, "This field is required"),
        ({"time_allowed": "2.9"}, "at least as long as one call may take"),
        ({"time_allowed": "86401"}, "at least as long as one call may take"),
        ({"call_timeout": "0"}, "One call must be allowed more than 0"),
        ({"call_timeout": "-1"}, "One call must be allowed more than 0"),
        ({"call_timeout": "601", "time_allowed": "700"}, "at most 600 seconds"),
        ({"call_timeout": "nan"}, "Enter a number"),
        ({"tries": "0"}, "between 1 and 10 calls"),
        ({"tries": "11"}, "between 1 and 10 calls"),
        ({"backoff": "0"}, "The wait before a retry must be more than 0"),
        ({"backoff": "61"}, "its cap at least as long"),
        ({"backoff_cap": "86401"}, "at most a day"),
        ({"window": "0"}, "The window must be between 1 and 10,000"),
        ({"window": "10001"}, "The window must be between 1 and 10,000"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(client, changes, sentence):
    before = Policy.objects.values().get(agent="greeter")
    response = save(client, **changes)
    assert response.status_code == 200
    assert sentence in words(response)
    assert Policy.objects.values().get(agent="greeter") == before
    assert Policy.history.filter(agent="greeter").count() == 1


def test_several_mistakes_are_all_named(client):
    page = words(save(client, failure_threshold="0", window="0"))
    assert "The failure threshold must be between" in page
    assert "The window must be between" in page


def test_the_agent_of_a_policy_stays_what_it_is(client):
    save(client, agent="another", failure_threshold="6")
    assert not Policy.objects.filter(agent="another").exists()
    assert Policy.objects.get(agent="greeter").failure_threshold == 6
    assert 'name="agent"' not in client.get(address("change", "greeter")).text


def test_the_form_explains_itself(client):
    page = words(client.get(address("change", "greeter")))
    assert "Failed attempts after which the step is an error, and an alert." in page
    assert "Steps beyond the window wait without any deadline running." in page


@pytest.mark.parametrize(("name", "row"), [("policy", "greeter"), ("supervisorpolicy", "1")])
def test_settings_are_neither_added_nor_deleted_nor_brought_back(client, name, row):
    assert client.get(reverse(f"admin:orchestration_{name}_changelist")).status_code == 200
    assert client.get(reverse(f"admin:orchestration_{name}_add")).status_code == 403
    assert client.post(address("delete", row, name), {"post": "yes"}).status_code == 403
    version = {"policy": Policy, "supervisorpolicy": SupervisorPolicy}[name].history.latest(
        "history_date"
    )
    old = address("history", row, name) + f"{version.pk}/"
    assert client.get(old).status_code in {302, 404}
    assert client.post(old, VALID).status_code in {302, 404}


@pytest.mark.parametrize(("interval", "done"), [("5", True), ("0.1", False), ("61", False)])
def test_the_supervisors_interval_is_adjusted_within_bounds(client, interval, done):
    response = client.post(
        address("change", "1", "supervisorpolicy"), {**SUPERVISOR, "interval": interval}
    )
    if done:
        assert SupervisorPolicy.objects.get().interval == 5
        assert "ada Interval : 1.0 → 5.0" in words(
            client.get(address("history", "1", "supervisorpolicy"))
        )
    else:
        assert "must be between 0.2 and 60 seconds" in words(response)
        assert SupervisorPolicy.objects.get().interval == 1


def test_whoever_may_only_look_changes_nothing():
    viewer = browser(person("vic", "view_policy", is_staff=True))
    assert viewer.get(address("change", "greeter")).status_code == 200
    assert save(viewer, failure_threshold="9").status_code == 403
    assert viewer.get(address("history", "greeter")).status_code == 200
    version = Policy.history.filter(agent="greeter").latest("history_date")
    viewer.post(address("history", "greeter") + f"{version.pk}/", {**VALID, "window": "9"})
    policy = Policy.objects.get(agent="greeter")
    assert (policy.failure_threshold, policy.window) == (5, 100)


def test_a_keys_weight_is_set_with_a_history_and_within_bounds(client):
    add = reverse("admin:orchestration_fairnessweight_add")
    refused = client.post(add, {"key": "till", "weight": "0"})
    assert "A weight is between 0.01 and 100." in words(refused)
    assert client.post(add, {"key": "till", "weight": "2"}).status_code == 302
    (weight,) = FairnessWeight.objects.all()
    page = address("change", weight.pk, "fairnessweight")
    assert client.post(page, {"key": "other", "weight": "3"}).status_code == 302
    weight.refresh_from_db()
    assert (weight.key, weight.weight) == ("till", 3)
    story = words(client.get(address("history", weight.pk, "fairnessweight")))
    assert "ada Weight : 2.0 → 3.0" in story
