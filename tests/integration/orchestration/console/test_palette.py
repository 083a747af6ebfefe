"""What the command palette finds."""

import pytest
from django.urls import reverse

from orchestration.models import Task
from tests.support.engine import in_error, new_task
from tests.support.operators import browser, person
from tests.support.page import POLL, query_count

pytestmark = pytest.mark.django_db


def hits_of(client, text):
    answer = client.get(reverse("ops:palette"), {"q": text})
    assert answer["Cache-Control"] == "no-store"
    return [(hit["kind"], hit["name"], hit["address"]) for hit in answer.json()["found"]]


def test_tasks_incidents_agents_and_workflows_are_found(client):
    step = in_error(new_task("t-1"), code="no_room")
    assert hits_of(client, "t-1") == [("Task", "t-1", reverse("ops:task", args=[step.task_id]))]
    ((kind, _, address),) = hits_of(client, "HELLO no_room")
    assert (kind, address) == ("Incident", reverse("ops:incident", args=[step.incident_id]))
    assert ("Agent", "greeter", "/ops/agents/#agent-greeter") in hits_of(client, "greet")
    assert ("Workflow", "greet", "/ops/workflows/#workflow-greet") in hits_of(client, "greet")


@pytest.mark.parametrize("text", ["", "t", '"', "step:", "x" * 500, "\0"])
def test_text_that_means_nothing_finds_nothing(client, text):
    new_task("t-1")
    assert hits_of(client, text) == []


def test_tasks_are_found_by_personal_data_only_with_the_permission(client):
    new_task("t-1")
    Task.objects.update(contact="ada@example.org")
    assert hits_of(client, "ada@example.org") == []
    seer = browser(person("bea", "operate", "see_personal"))
    assert [name for _, name, _ in hits_of(seer, "ada@example.org")] == ["t-1"]


def test_search_costs_the_same_however_much_is_found(client):
    address = reverse("ops:palette") + "?q=t-"
    in_error(new_task("t-1"))
    before = query_count(client, address)
    for number in range(2, 9):
        in_error(new_task(f"t-{number}"), code=f"t-{number}")
    assert query_count(client, address) == before
    assert len(hits_of(client, "t-")) == 11


@pytest.mark.parametrize(("count", "more"), [(5, 0), (6, 1)])
def test_more_tasks_than_are_shown_have_a_way_to_all(client, count, more):
    for number in range(count):
        new_task(f"t-{number} x")
    hits = hits_of(client, '"t-')
    assert hits == []
    hits = hits_of(client, "t-")
    assert [address for kind, _, address in hits if kind == "Task"] == [
        address for kind, _, address in hits[:5]
    ]
    assert [address for *_, address in hits[5:]] == ["/ops/tasks/?q=t-"] * more


def test_palette_of_an_ended_session_is_not_sent_to_the_login():
    assert browser().get(reverse("ops:palette"), headers=POLL).status_code == 401


def test_null_character_is_ignored():
    client = browser(person("ann", "operate"))
    assert client.get("/ops/palette/?q=a%00b").status_code == 200
