"""Settings in the admin: bounds, with a sentence each, and a history of each change."""

import re

import pytest
from django.apps import apps
from django.urls import reverse

from orchestration.models import FairnessWeight, Policy, RetentionPolicy, SupervisorPolicy
from tests.support.form import fields_of
from tests.support.operators import browser, person
from tests.support.page import page
from tests.support.policies import VALID

pytestmark = pytest.mark.django_db

SUPERVISOR = {
    "oldest_waiting": "300",
    "undo_stuck": "900",
    "status_undelivered": "300",
    "audit_every": "3600",
    "whole_audit_every": "86400",
}


def address(view, row, name="policy"):
    return reverse(f"admin:orchestration_{name}_{view}", args=[row])


def save(client, **changes):
    return client.post(address("change", "greeter"), {**VALID, **changes})


def test_changed_threshold_takes_effect_at_once(client):
    assert save(client, failure_threshold="7").status_code == 302
    assert Policy.objects.get(agent="greeter").failure_threshold == 7


def history_of(response) -> list[list[str]]:
    """Return time, user and changes of each version, newest first."""
    return page(response).only("#change-history").rows()


def errors_of(response) -> str:
    return " ".join(page(response).texts(".errorlist"))


def test_history_names_user_time_old_and_new_value(client):
    save(client, failure_threshold="7", window="20")
    save(browser(person("bea", is_staff=True, is_superuser=True)), failure_threshold="7")
    response = client.get(address("history", "greeter"))
    times, users, changes, _, _ = zip(*history_of(response), strict=True)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", time) for time in times)
    assert users == ("bea", "ada", "the system")
    assert changes[0] == "Window : 20 → 100"
    assert "Failure threshold : 5 → 7" in changes[1]
    assert "Window : 100 → 20" in changes[1]
    assert changes[2] == "created with the defaults"
    assert "Updated at" not in " ".join(changes)
    assert " style=" not in response.text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"failure_threshold": "0"}, "The failure threshold must be between 1 and 1000"),
        ({"failure_threshold": "1001"}, "The failure threshold must be between 1 and 1000"),
        ({"failure_threshold": "-1"}, "The failure threshold must be between 1 and 1000"),
        ({"failure_threshold": "99999"}, "The failure threshold must be between 1 and 1000"),
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
        ({"window": "9999999999"}, "The window must be between 1 and 10,000"),
        ({"window": "10001"}, "The window must be between 1 and 10,000"),
    ],
)
def test_invalid_value_is_refused_with_a_sentence(client, changes, sentence):
    before = Policy.objects.values().get(agent="greeter")
    response = save(client, **changes)
    assert response.status_code == 200
    assert sentence in errors_of(response)
    assert Policy.objects.values().get(agent="greeter") == before
    assert Policy.history.filter(agent="greeter").count() == 1


def test_all_invalid_values_are_reported(client):
    errors = errors_of(save(client, failure_threshold="0", window="0"))
    assert "The failure threshold must be between" in errors
    assert "The window must be between" in errors


def test_agent_of_a_policy_cannot_be_changed(client):
    save(client, agent="another", failure_threshold="6")
    assert not Policy.objects.filter(agent="another").exists()
    assert Policy.objects.get(agent="greeter").failure_threshold == 6
    assert page(client.get(address("change", "greeter"))).all('[name="agent"]') == []


def test_form_explains_its_fields(client):
    form = page(client.get(address("change", "greeter")))
    for name in ("failure_threshold", "window"):
        help_text = Policy._meta.get_field(name).help_text
        assert form.only(f"#id_{name}_helptext").text == help_text != ""


@pytest.mark.parametrize(
    ("name", "row"),
    [("policy", "greeter"), ("supervisorpolicy", "1"), ("retentionpolicy", "greet")],
)
def test_settings_are_neither_added_nor_deleted_nor_restored_unchecked(client, name, row):
    assert client.get(reverse(f"admin:orchestration_{name}_changelist")).status_code == 200
    assert client.get(reverse(f"admin:orchestration_{name}_add")).status_code == 403
    assert client.post(address("delete", row, name), {"post": "yes"}).status_code == 403
    version = apps.get_model("orchestration", name).history.latest("history_date")
    old = address("history", row, name) + f"{version.pk}/"
    assert client.get(old).status_code in {302, 404}
    assert client.post(old, VALID).status_code in {302, 404}


@pytest.mark.parametrize(("days", "saved"), [("30", 30), ("", None), ("0", 365)])
def test_time_for_which_tasks_are_kept_has_bounds(client, days, saved):
    change = address("change", "greet", "retentionpolicy")
    response = client.post(change, {"keep_days": days})
    assert RetentionPolicy.objects.get(workflow="greet").keep_days == saved
    if saved == 365:
        assert "at least a day" in errors_of(response)
    else:
        ((_, user, change, *_), *_) = history_of(
            client.get(address("history", "greet", "retentionpolicy"))
        )
        assert (user, change) == ("ada", f"Keep days : 365.0 → {float(saved) if saved else None}")


@pytest.mark.parametrize(("interval", "done"), [("5", True), ("0.1", False), ("61", False)])
def test_interval_of_the_supervisor_has_bounds(client, interval, done):
    response = client.post(
        address("change", "1", "supervisorpolicy"), {**SUPERVISOR, "interval": interval}
    )
    if done:
        assert SupervisorPolicy.objects.get().interval == 5
        ((_, user, change, *_), *_) = history_of(
            client.get(address("history", "1", "supervisorpolicy"))
        )
        assert (user, change) == ("ada", "Interval : 1.0 → 5.0")
    else:
        assert "must be between 0.2 and 60 seconds" in errors_of(response)
        assert SupervisorPolicy.objects.get().interval == 1


def test_change_may_have_a_reason_which_the_history_and_the_audit_show(client):
    assert save(client, window="20", reason="they have grown").status_code == 302
    save(client, window="30")
    reasons = [row[3] for row in history_of(client.get(address("history", "greeter")))]
    assert reasons[:2] == ["", "they have grown"]
    assert "they have grown" in client.get(reverse("ops:audit")).text
    assert "at most 100 characters" in errors_of(save(client, window="40", reason="x" * 101))
    add = reverse("admin:orchestration_fairnessweight_add")
    client.post(add, {"key": "till", "weight": "2", "reason": "two tills"})
    assert FairnessWeight.history.get().history_change_reason == "two tills"


def test_viewer_cannot_change_settings():
    viewer = browser(person("vic", "view_policy", is_staff=True))
    shown = viewer.get(address("change", "greeter"))
    assert (shown.status_code, page(shown).all('[name="reason"]')) == (200, [])
    assert save(viewer, failure_threshold="9").status_code == 403
    assert viewer.get(address("history", "greeter")).status_code == 200
    version = Policy.history.filter(agent="greeter").latest("history_date")
    viewer.post(address("history", "greeter") + f"{version.pk}/", {**VALID, "window": "9"})
    policy = Policy.objects.get(agent="greeter")
    assert (policy.failure_threshold, policy.window) == (5, 100)


def test_weight_of_a_fairness_key_has_history_and_bounds(client):
    add = reverse("admin:orchestration_fairnessweight_add")
    refused = client.post(add, {"key": "till", "weight": "0"})
    assert "A weight is between 0.01 and 100." in errors_of(refused)
    assert client.post(add, {"key": "till", "weight": "2"}).status_code == 302
    (weight,) = FairnessWeight.objects.all()
    form = address("change", weight.pk, "fairnessweight")
    assert client.post(form, {"key": "other", "weight": "3"}).status_code == 302
    weight.refresh_from_db()
    assert (weight.key, weight.weight) == ("till", 3)
    ((_, user, change, *_), *_) = history_of(
        client.get(address("history", weight.pk, "fairnessweight"))
    )
    assert (user, change) == ("ada", "Weight : 2.0 → 3.0")


def test_list_of_policies_has_units_and_one_order(client):
    listed = page(client.get(reverse("admin:orchestration_policy_changelist")))
    agents = listed.texts(".field-agent")
    assert agents == sorted(agents) != []
    (head,) = listed.all(".column-time_allowed")
    assert "(s)" in head.text
    assert set(listed.texts(".field-time_allowed")) >= {"10"}


def versions(name="policy", **key):
    """Return the ids of a setting's versions, the first one first."""
    model = apps.get_model("orchestration", name)
    records = model.history.filter(**(key or {"agent": "greeter"})).order_by("history_id")
    return list(records.values_list("history_id", flat=True))


def revert_address(version, row="greeter", name="policy"):
    return f"{address('change', row, name)}?version={version}"


def revert(client, version, *, reason="it was too high", meanwhile=lambda: None, **where):
    shown = page(client.get(revert_address(version, **where)))
    fields = fields_of(shown.only(f"form#{where.get('name', 'policy')}_form"))
    meanwhile()
    return client.post(revert_address(version, **where), {**fields, "reason": reason})


def test_earlier_values_are_set_again_with_a_reason(client):
    save(client)
    save(client, failure_threshold="7", window="20")
    _, first, _ = versions()
    shown = page(client.get(revert_address(first)))
    assert shown.texts("[data-change]") == ["Failure threshold: 7 → 5", "Window: 20 → 100"]
    assert revert(client, first).status_code == 302
    policy = Policy.objects.get(agent="greeter")
    assert (policy.failure_threshold, policy.window) == (5, 100)
    (_, user, changes, reason, _), *_ = history_of(client.get(address("history", "greeter")))
    assert (user, reason) == ("ada", "it was too high")
    assert "Window : 20 → 100" in changes
    assert "it was too high" in client.get(reverse("ops:audit")).text


def test_each_earlier_version_is_offered_but_not_the_present_one(client):
    save(client, failure_threshold="7")
    first, _ = versions()
    links = page(client.get(address("history", "greeter"))).only("#change-history").all("a")
    assert [link["href"] for link in links] == [revert_address(first)]


def test_change_can_be_undone_from_its_message(client):
    saved = save(client, failure_threshold="7")
    first, _ = versions()
    assert page(client.get(saved["Location"])).only("[data-undo]")["href"] == revert_address(first)
    unchanged = save(client, failure_threshold="7")
    assert page(client.get(unchanged["Location"])).all("[data-undo]") == []


@pytest.mark.parametrize("reason", ["", "x" * 101])
def test_revert_needs_a_reason(client, reason):
    save(client, failure_threshold="7")
    first, _ = versions()
    answer = revert(client, first, reason=reason)
    assert answer.status_code == 200
    assert page(answer).all(".errorlist")
    assert Policy.objects.get(agent="greeter").failure_threshold == 7
    assert len(versions()) == 2


def test_revert_of_what_was_changed_meanwhile_is_refused(client):
    save(client, failure_threshold="7")
    first, _ = versions()
    answer = revert(client, first, meanwhile=lambda: save(client, failure_threshold="9"))
    assert answer.status_code == 200
    assert page(answer).all(".errorlist")
    assert Policy.objects.get(agent="greeter").failure_threshold == 9


def test_values_that_are_invalid_by_now_are_not_set_again(client):
    save(client, failure_threshold="7")
    first, _ = versions()
    Policy.history.filter(history_id=first).update(failure_threshold=0)
    answer = revert(client, first, reason="all the same")
    assert "must be between 1 and 1000" in page(answer).only(".errorlist").text
    assert Policy.objects.get(agent="greeter").failure_threshold == 7


def test_version_with_the_present_values_has_nothing_to_change(client):
    (only,) = versions()
    shown = page(client.get(revert_address(only)))
    assert shown.all("[data-change]") == []
    assert "set now" in shown.only(".messagelist").text


def test_only_those_who_may_change_a_setting_can_revert_it():
    save(browser(person("bea", is_staff=True, is_superuser=True)), failure_threshold="7")
    first, _ = versions()
    viewer = browser(person("vic", "view_policy", is_staff=True))
    assert page(viewer.get(address("history", "greeter"))).only("#change-history").all("a") == []
    assert viewer.get(revert_address(first)).status_code == 403
    assert viewer.post(revert_address(first), {**VALID, "reason": "mine"}).status_code == 403
    assert Policy.objects.get(agent="greeter").failure_threshold == 7


def test_version_of_another_row_is_missing(client):
    (other,) = versions("policy", agent="payment")
    assert client.get(revert_address(other)).status_code == 404
    for version in (10**9, 10**30, "x", ""):
        assert client.get(revert_address(version)).status_code == 404


def test_empty_and_other_settings_are_reverted_too(client):
    change = address("change", "greet", "retentionpolicy")
    client.post(change, {"keep_days": ""})
    client.post(change, {"keep_days": "30"})
    _, empty, _ = versions("retentionpolicy", workflow="greet")
    revert(client, empty, row="greet", name="retentionpolicy")
    assert RetentionPolicy.objects.get(workflow="greet").keep_days is None
