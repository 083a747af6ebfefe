"""Step policies in the admin: effective values, bounds with the agent's, history, and the replay."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import registry
from orchestration.database import clock
from orchestration.models import Policy, StepPolicy
from orchestration.transitions.replies import record
from tests.support.engine import claimed, new_task, reply_to
from tests.support.form import fields_of
from tests.support.operators import browser, fail, person
from tests.support.page import page
from tests.support.policies import VALID

pytestmark = pytest.mark.django_db
LIST = reverse("admin:orchestration_steppolicy_changelist")
EMPTY = dict.fromkeys(
    ("failure_threshold", "past_threshold", "extended_wait", "max_extended_waits", "on_rejection",
     "resolve_within", "undo_threshold"), "",
)  # fmt: skip


def row(step="hello", workflow="greet"):
    return StepPolicy.objects.get(workflow=workflow, step=step)


def address(view="change", step="hello"):
    return reverse(f"admin:orchestration_steppolicy_{view}", args=[row(step).pk])


def save(client, step="hello", **changes):
    return client.post(address(step=step), {**EMPTY, **changes})


def errors_of(response):
    return " ".join(page(response).texts(".errorlist"))


def test_list_shows_the_values_in_force_and_marks_own_ones(client):
    save(client, failure_threshold="3", on_rejection="undo")
    listed = page(client.get(LIST, {"workflow": "greet"}))
    assert listed.texts(".field-workflow") == ["greet", "greet"]
    assert listed.texts(".field-step") == ["again", "hello"]
    assert listed.texts(".field-called") == ["greeter", "greeter"]
    assert listed.texts(".field-failure_threshold") == ["5", "3 (own)"]
    assert listed.texts(".field-on_rejection")[1] == "undo (own)"
    assert listed.texts("[data-own]") == ["3 (own)", "undo (own)"]
    assert listed.texts(".field-resolve_within") == ["1800", "1800"]


def test_list_is_searched_and_filtered(client):
    steps = page(client.get(LIST, {"q": "hello"})).texts(".field-step")
    assert steps == ["hello"]
    assert set(page(client.get(LIST, {"q": "greeter"})).texts(".field-workflow")) >= {"greet"}


def test_queries_of_the_list_are_independent_of_its_rows(client):
    def queries():
        with CaptureQueriesContext(connection) as seen:
            client.get(LIST)
        return len(seen)

    client.get(LIST)
    before = queries()
    StepPolicy.objects.bulk_create(
        [StepPolicy(workflow="old", step=f"s{n}", agent=f"a{n}") for n in range(20)]
    )
    assert queries() == before


def test_step_that_is_not_declared_any_more_is_shown_as_such(client, monkeypatch):
    monkeypatch.delitem(registry.workflows, "greet")
    agents = page(client.get(LIST, {"workflow": "greet"})).texts(".field-called")
    assert agents == ["greeter (step no longer declared)"] * 2


def test_form_names_the_values_of_the_agent(client):
    Policy.objects.filter(agent="greeter").update(failure_threshold=8, on_rejection="wait")
    form = page(client.get(address()))
    assert form.only("#id_failure_threshold_helptext").text.endswith("Empty: the agent's, 8.")
    words = form.only("#id_on_rejection_helptext").text
    assert words.endswith("Empty: the agent's, “Wait for a fix, then undo the task”.")
    assert form.all('[name="window"]') == form.all('[name="agent"]') == []


def test_own_values_are_saved_and_emptied_again(client):
    assert save(client, failure_threshold="7", past_threshold="wait").status_code == 302
    assert row().own == {"failure_threshold": 7, "past_threshold": "wait"}
    assert save(client, past_threshold="wait").status_code == 302
    assert row().own == {"past_threshold": "wait"}
    assert row("again").own == {}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"failure_threshold": "0"}, "The failure threshold must be between 1 and 1000"),
        ({"failure_threshold": "-1"}, "The failure threshold must be between 1 and 1000"),
        ({"failure_threshold": "1001"}, "The failure threshold must be between 1 and 1000"),
        ({"failure_threshold": "many"}, "Enter a whole number"),
        ({"undo_threshold": "10001"}, "at most 10,000 times"),
        ({"failure_threshold": "9", "undo_threshold": "8"}, "at least as often as what it undoes"),
        ({"resolve_within": "0"}, "A rejected step must wait more than 0 seconds"),
        ({"extended_wait": "604801"}, "at most a week"),
        ({"max_extended_waits": "1001"}, "at most 1000 times"),
        ({"on_rejection": "ignore"}, "Select a valid choice"),
        ({"failure_threshold": "21"}, "would have failure threshold 21, undo threshold 20."),
        ({"undo_threshold": "4"}, "would have failure threshold 5, undo threshold 4."),
    ],
)
def test_invalid_value_is_refused_with_a_sentence(client, changes, sentence):
    response = save(client, **changes)
    assert response.status_code == 200
    assert sentence in errors_of(response)
    assert row().own == {}
    assert StepPolicy.history.filter(id=row().pk).count() == 1


@pytest.mark.parametrize(
    ("own", "of_agent", "refused"),
    [
        ({"failure_threshold": "15"}, {"undo_threshold": "14"}, "failure threshold 15, undo threshold 14"),
        ({"undo_threshold": "6"}, {"failure_threshold": "7"}, "failure threshold 7, undo threshold 6"),
        ({"failure_threshold": "15", "undo_threshold": "15"}, {"undo_threshold": "14"}, ""),
    ],
)  # fmt: skip
def test_agent_must_not_be_changed_so_that_it_does_not_fit_a_step(client, own, of_agent, refused):
    save(client, **own)
    form = reverse("admin:orchestration_policy_change", args=["greeter"])
    response = client.post(form, {**VALID, **of_agent})
    assert (response.status_code == 200) == bool(refused)
    if refused:
        assert f"greet/hello: {refused}" in errors_of(response)


def test_agent_is_changed_otherwise_though_a_step_does_not_fit_it(client):
    StepPolicy.objects.filter(pk=row().pk).update(failure_threshold=30)  # a release declares it so
    form = reverse("admin:orchestration_policy_change", args=["greeter"])
    assert client.post(form, {**VALID, "window": "7"}).status_code == 302
    assert Policy.objects.get(agent="greeter").window == 7
    assert client.post(form, {**VALID, "undo_threshold": "21"}).status_code == 200


def test_earlier_values_of_an_agent_must_fit_its_steps(client):
    form = reverse("admin:orchestration_policy_change", args=["greeter"])
    client.post(form, {**VALID, "undo_threshold": "10"})
    first = Policy.history.filter(agent="greeter", undo_threshold=10).earliest("history_id")
    client.post(form, {**VALID, "undo_threshold": "40"})
    save(client, failure_threshold="30")
    reverting = f"{form}?version={first.history_id}"
    fields = fields_of(page(client.get(reverting)).only("form#policy_form"))
    response = client.post(reverting, {**fields, "reason": "as before"})
    assert "greet/hello: failure threshold 30, undo threshold 10" in errors_of(response)


def test_history_and_audit_name_the_change_and_its_reason(client):
    save(client, failure_threshold="7", reason="the bank is slow")
    (_, user, change, reason, _), first = (
        page(client.get(address("history"))).only("#change-history").rows()
    )
    assert (user, reason) == ("ada", "the bank is slow")
    assert change == "Failure threshold : None → 7"
    assert first[1] == "the system"
    audit = client.get(reverse("ops:audit"), {"kind": "policy"}).text
    assert "greet/hello" in audit
    assert "the bank is slow" in audit


def test_earlier_values_are_set_again(client):
    save(client, failure_threshold="7")
    first = StepPolicy.history.filter(id=row().pk).earliest("history_id").history_id
    reverting = f"{address()}?version={first}"
    shown = page(client.get(reverting))
    assert shown.texts("[data-change]") == ["Failure threshold: 7 → None"]
    fields = fields_of(shown.only("form#steppolicy_form"))
    assert client.post(reverting, {**fields, "reason": "as before"}).status_code == 302
    assert row().own == {}


def test_rows_are_neither_added_nor_deleted(client):
    assert client.get(reverse("admin:orchestration_steppolicy_add")).status_code == 403
    assert client.post(address("delete"), {"post": "yes"}).status_code == 403


def test_right_to_see_is_none_to_change():
    viewer = browser(person("vic", "view_steppolicy", is_staff=True))
    assert viewer.get(LIST).status_code == 200
    shown = viewer.get(address())
    assert (shown.status_code, "what-if" in shown.text) == (200, False)
    assert save(viewer, failure_threshold="7").status_code == 403
    assert viewer.post(address("what_if"), EMPTY).status_code == 403
    assert browser(person("pol", "change_policy", is_staff=True)).get(LIST).status_code == 403


def line_of(response, name):
    return page(response).only(f'[data-line="{name}"]').texts("td")


def answer():
    """Have all that is claimed be done at once."""
    record([reply_to(request, started=clock.now()) for request in claimed()])


def failed_once(step):
    """Have a step of a task fail once, and then be done."""
    new_task()
    if step == "again":
        answer()
    fail(claimed())
    with connection.cursor() as cursor:
        cursor.execute("UPDATE orchestration_step SET run_after = NULL WHERE run_after IS NOT NULL")
    answer()


def test_replay_is_about_the_steps_own_attempts(client):
    failed_once("again")
    failed_once("hello")
    asked = {**EMPTY, "failure_threshold": "1", "_what_if": "yes"}
    of_hello = client.post(address("what_if"), asked)
    of_again = client.post(address("what_if", "again"), asked)
    assert line_of(of_hello, "errors") == ["0", "1", "+1"]
    assert line_of(of_again, "errors") == ["0", "1", "+1"]
    assert page(of_hello).only("thead").texts("th")[0] == "greet/hello"
    same = client.post(address("what_if"), {**EMPTY, "_what_if": "yes"})
    assert page(same).all("[data-line]")
    assert page(same).all(".differs") == []
    assert row().own == {}
    wrong = client.post(
        address("what_if"), {**asked, "undo_threshold": "1", "failure_threshold": "2"}
    )
    assert page(wrong).all("table") == []
    assert len(page(wrong).only(".errorlist").all("li")) == 1


def test_replay_of_the_agent_leaves_steps_with_values_of_their_own(client):
    failed_once("again")
    failed_once("hello")
    panel = reverse("admin:orchestration_policy_what_if", args=["greeter"])
    asked = {**VALID, "failure_threshold": "1", "_what_if": "yes"}
    assert line_of(client.post(panel, asked), "errors") == ["0", "2", "+2"]
    save(client, "again", failure_threshold="5")
    assert line_of(client.post(panel, asked), "errors") == ["0", "1", "+1"]


def test_replay_without_javascript_keeps_the_typed_values(client):
    failed_once("hello")
    response = client.post(address(), {**EMPTY, "failure_threshold": "1", "_what_if": "Try"})
    assert line_of(response, "errors") == ["0", "1", "+1"]
    assert page(response).only('[name="failure_threshold"]')["value"] == "1"
    assert row().own == {}
