"""Starting tasks by hand, by the form of a workflow or again with a task's input."""

from dataclasses import replace

import pytest
from django.db import connection
from django.urls import reverse

from orchestration import registry, submission
from orchestration.api import field
from orchestration.applications.by_hand import new_reference
from orchestration.models import Event, Submission, Task
from orchestration.models.fields import DatabaseNow
from tests.support.engine import new_task, run_to_end
from tests.support.operators import browser, person
from tests.support.page import POLL, page
from tests.support.together import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def client():
    """An operator who may start tasks, but not read personal data."""
    return browser(person("ann", "operate", "start"))


@pytest.fixture(autouse=True)
def greet(monkeypatch):
    """Return the workflow; its name is a text, as it is the contact, and so personal."""
    declared = replace(registry.workflows["greet"], contact=field("name"))
    monkeypatch.setitem(registry.workflows, "greet", declared)
    return declared


def sent(client, address, *, reference=None, **fields):
    """Send the form as a page shows it, with other values of some fields."""
    shown = page(client.get(address))
    form = {"reference": shown.only('input[name="reference"]')["value"], "reason": "to see"}
    return client.post(address, form | fields | ({"reference": reference} if reference else {}))


def start(client, workflow="greet", **fields):
    return sent(client, reverse("ops:start", args=[workflow]), **fields)


def again(client, task, **fields):
    return sent(client, reverse("ops:again", args=[task.id]), **fields)


def followed(client, response):
    """Return the task that a form has started, once the submissions were taken."""
    assert response.status_code == 303, response.text
    submission.take(10)
    leads = client.get(response["Location"])
    assert leads.status_code == 302
    return Task.objects.get(id=leads["Location"].split("/")[-2])


def test_form_has_a_field_for_each_that_the_workflow_takes(client):
    shown = page(client.get(reverse("ops:start", args=["greet"])))
    assert [field["name"] for field in shown.only("form.stack").all("input")][2:] == [
        "input-name",
        "reason",
    ]
    assert shown.only('textarea[name="input-$others"]')


def test_task_is_started_by_an_ordinary_submission(client):
    answer = start(client, **{"input-name": "Ada", "input-$others": '{"n": 1}'})
    task = followed(client, answer)
    assert (task.workflow, task.data) == ("greet", {"name": "Ada", "n": 1})
    address = reverse("ops:task", args=[task.id])
    strip = page(client.get(address)).only("[data-started-by]")
    assert strip["data-started-by"] == "ann"
    assert "to see" not in strip.text
    trusted = browser(person("bea", "operate", "see_personal"))
    assert "to see" in page(trusted.get(address)).only("[data-started-by]").text
    event = Event.objects.get(kind="started")
    assert (event.actor, event.reason, event.task) == ("ann", "to see", None)
    assert event.detail["reference"] == task.reference
    run_to_end(task)
    assert task.state == "processed"


def test_form_that_is_sent_twice_starts_one_task(client):
    reference = new_reference()
    first = start(client, reference=reference, **{"input-name": "Ada"})
    second = start(client, reference=reference, **{"input-name": "Eve"})
    assert first["Location"] == second["Location"]
    assert Submission.objects.count() == Event.objects.filter(kind="started").count() == 1
    task = followed(client, first)
    third = start(client, reference=reference, **{"input-name": "Ada"})
    assert followed(client, third) == task
    assert Task.objects.count() == 1
    assert not Submission.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_form_that_is_sent_twice_at_once_starts_one_task():
    reference, user = new_reference(), person("ann", "operate", "start")
    fields = {"reference": reference, "reason": "to see", "input-name": "Ada"}
    address = reverse("ops:start", args=["greet"])
    answers = at_once({number: lambda: browser(user).post(address, fields) for number in range(2)})
    assert [answer.status_code for answer in answers.values()] == [303, 303]
    assert Submission.objects.count() == Event.objects.filter(kind="started").count() == 1


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "input-name"),
        ({"input-name": "Ada", "input-$others": "{"}, "input-$others"),
        ({"input-name": "Ada", "input-$others": "[1]"}, "input-$others"),
        ({"input-name": "Ada", "reason": ""}, "reason"),
    ],
)
def test_wrong_form_starts_nothing_and_keeps_what_was_typed(client, fields, wrong):
    answer = start(client, **fields)
    assert answer.status_code == 422
    shown = page(answer)
    assert shown.only(".errors").all("li")
    (invalid,) = shown.all('[aria-invalid="true"]')
    assert invalid["name"] == wrong
    if "input-name" in fields:
        assert shown.only('input[name="input-name"]')["value"] == "Ada"
    assert not Submission.objects.exists()


def test_reference_of_another_kind_is_refused(client):
    """A form names only references that it was given: no application's own."""
    for reference in ("order-1", f"hand-{'0' * 32}\n"):
        assert start(client, reference=reference, **{"input-name": "Ada"}).status_code == 422
    assert not Submission.objects.exists()


def test_start_again_has_the_same_input_and_links_both(client):
    task = new_task("t-1", data={"name": "Ada", "more": [1]}, priority=3)
    other = followed(client, again(client, task))
    assert (other.data, other.priority) == (task.data, 3)
    assert other.reference != task.reference
    strip = page(client.get(reverse("ops:task", args=[other.id]))).only("[data-started-by]")
    assert strip.only("a")["href"] == reverse("ops:task", args=[task.id])
    events = page(client.get(reverse("ops:task", args=[task.id]))).section("h-events")
    link = events.only('a[href^="/ops/started/"]')
    assert client.get(link["href"])["Location"] == reverse("ops:task", args=[other.id])


def test_input_of_a_task_is_shown_without_personal_data(client):
    task = new_task("t-1", data={"name": "Ada-of-Bath"})
    assert "Ada-of-Bath" not in client.get(reverse("ops:again", args=[task.id])).text
    assert followed(client, again(client, task)).data == {"name": "Ada-of-Bath"}


@pytest.mark.parametrize("change", [{"not_by_hand": "It has a price."}, {"private": ["secret"]}])
def test_workflow_that_forbids_it_is_not_started(client, greet, monkeypatch, change):
    monkeypatch.setitem(registry.workflows, "greet", replace(greet, **change))
    task = new_task("t-1")
    address = reverse("ops:again", args=[task.id])
    shown = page(client.get(address))
    assert shown.only("[data-not-by-hand]").text
    assert not shown.all("form.stack")
    fields = {"reference": new_reference(again=True), "reason": "to see"}
    assert client.post(address, fields).status_code == 422
    assert address not in client.get(reverse("ops:task", args=[task.id])).text
    assert not Submission.objects.exists()


def test_order_is_not_started_by_hand(client):
    address = reverse("ops:start", args=["process_order"])
    assert page(client.get(address)).only("[data-not-by-hand]")
    fields = {"reference": new_reference(), "reason": "to see", "input-$others": "{}"}
    assert client.post(address, fields).status_code == 422
    assert not Submission.objects.exists()


def test_page_of_a_submission_leads_on_once_it_is_a_task(client):
    answer = start(client, **{"input-name": "Ada"})
    waiting = page(client.get(answer["Location"]))
    assert waiting.only("[data-submission]")["data-submission"] == "waiting"
    poll = waiting.only("#live")["hx-get"]
    assert client.get(poll, headers=POLL).status_code == 204
    submission.take(10)
    assert client.get(poll, headers=POLL)["HX-Redirect"].startswith("/ops/tasks/")


def test_submission_that_becomes_a_task_meanwhile_is_not_missing(client):
    answer = start(client, **{"input-name": "Ada"})
    taken = []

    def take_after_the_first_look(execute, statement, *rest):
        result = execute(statement, *rest)
        if "reference" in statement and not taken:
            taken.append(True)
            submission.take(10)
        return result

    with connection.execute_wrapper(take_after_the_first_look):
        leads = client.get(answer["Location"])
    assert taken
    assert leads["Location"] == reverse("ops:task", args=[Task.objects.get().id])


def test_page_of_a_refused_submission_says_why(client):
    answer = start(client, **{"input-name": "Ada"})
    Submission.objects.update(refused_at=DatabaseNow(), reason="no such name")
    refused = page(client.get(answer["Location"])).only("[data-submission]")
    assert refused["data-submission"] == "refused"
    assert "no such name" in refused.text


def test_page_of_an_unknown_submission_is_missing(client):
    assert client.get(reverse("ops:started", args=["greet", "x"])).status_code == 404
    assert client.get(reverse("ops:start", args=["gone"])).status_code == 404
