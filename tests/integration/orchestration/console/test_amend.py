"""The page by which operators change the input of a running task."""

import json
from dataclasses import replace

import pytest
from django.urls import reverse

from orchestration import registry
from orchestration.api import field
from orchestration.models import Event
from orchestration.people.redaction import HIDDEN
from orchestration.transitions.undo import undo
from tests.support.engine import claimed, new_task, run_to_end, step_of
from tests.support.operators import browser, person
from tests.support.page import conflict_of, page

pytestmark = pytest.mark.django_db
DATA = {"name": "Ada", "gift": True}


@pytest.fixture(autouse=True)
def greet(monkeypatch):
    """Have the name personal."""
    declared = replace(registry.workflows["greet"], contact=field("name"))
    monkeypatch.setitem(registry.workflows, "greet", declared)
    return declared


@pytest.fixture
def client():
    return browser(person("ann", "operate", "correct", "see_personal"))


def address(task):
    return reverse("ops:amend", args=[task.id])


def sent(client, task, data, *, reason="a typo", seen=None):
    """Send the form as the page shows it, with other input."""
    form = page(client.get(address(task)))
    shown = {"seen": seen or form.only('input[name="seen"]')["value"]}
    return client.post(address(task), {**shown, "reason": reason, "payload": json.dumps(data)})


def problem(answer):
    assert answer.status_code == 422
    return page(answer).only("#id_payload_error").text


def test_operator_changes_what_no_step_has_used(client):
    task = new_task("7", data=DATA)
    link = page(client.get(reverse("ops:task", args=[task.id]))).all(f'a[href="{address(task)}"]')
    assert link
    assert sent(client, task, {**DATA, "name": "Eva"}).status_code == 303
    task.refresh_from_db()
    assert (task.data["name"], step_of(task).request) == ("Eva", {"to": "Eva"})
    (event,) = Event.objects.filter(task=task, kind="amended")
    assert (event.actor, event.reason, event.detail["fields"]) == ("ann", "a typo", ["name"])
    shown = page(client.get(reverse("ops:task", args=[task.id]))).section("h-events").text
    assert "Input changed" in shown


def test_form_names_the_steps_that_have_used_a_value(client):
    task = new_task("7", data=DATA)
    claimed()
    assert "“hello”" in problem(sent(client, task, {**DATA, "name": "Eva"}))
    task.refresh_from_db()
    assert task.data == DATA
    assert sent(client, task, {**DATA, "gift": False, "card": "x"}).status_code == 303
    task.refresh_from_db()
    assert task.data == {**DATA, "gift": False, "card": "x"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"name": "Ada"}, "gift"),
        ({"gift": True}, "name"),
        ([], "object"),
        ({**DATA, "name": None}, ""),
    ],
)
def test_input_that_the_task_cannot_have_is_refused(client, data, why):
    task = new_task("7", data=DATA)
    assert why in problem(sent(client, task, data))
    assert not Event.objects.filter(kind="amended").exists()


def test_operator_who_may_not_see_personal_data_keeps_it_as_it_is():
    blind = browser(person("bob", "operate", "correct"))
    task = new_task("7", data=DATA)
    form = page(blind.get(address(task)))
    assert json.loads(form.only("textarea").text) == {"name": HIDDEN, "gift": True}
    assert "Ada" not in form.text
    assert sent(blind, task, {"name": HIDDEN, "gift": False}).status_code == 303
    task.refresh_from_db()
    assert task.data == {"name": "Ada", "gift": False}
    assert "hidden" in problem(sent(blind, task, {"name": "Eva", "gift": False}))


def test_guarded_fields_are_the_applications(client, monkeypatch):
    monkeypatch.setattr(registry.agents["greeter"].greet, "guarded", ("to",))
    task = new_task("7", data=DATA)
    assert page(client.get(address(task))).only("[data-guarded]")["data-guarded"] == "name"
    assert "nly the application can change name" in problem(
        sent(client, task, {**DATA, "name": "Eva"})
    )


def test_second_of_two_operators_sees_who_was_first(client):
    task = new_task("7", data=DATA)
    old = page(client.get(address(task))).only('input[name="seen"]')["value"]
    sent(
        browser(person("bob", "operate", "correct", "see_personal")), task, {**DATA, "gift": False}
    )
    answer = sent(client, task, {**DATA, "name": "Eva"}, seen=old)
    assert answer.status_code == 409
    actor, _ = conflict_of(answer)
    assert actor == "bob"
    task.refresh_from_db()
    assert task.data == {**DATA, "gift": False}


def test_input_of_a_task_that_has_ended_or_is_undone_stays(client, greet, monkeypatch):
    task = new_task("7", data=DATA)
    run_to_end(task)
    assert client.get(address(task)).status_code == 409
    assert address(task) not in client.get(reverse("ops:task", args=[task.id])).text
    other = new_task("8", data=DATA)
    claimed()
    undo(other.id, actor="ann", reason="wrong")
    assert client.get(address(other)).status_code == 409
    third = new_task("9", data=DATA)
    monkeypatch.delitem(registry.workflows, "greet")
    assert client.get(address(third)).status_code == 409
