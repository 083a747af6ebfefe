"""The agents' page: gates, load and times; a probe at once."""

import re
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import registry
from orchestration.api import field
from orchestration.histogram import buckets
from orchestration.models import Event, Gate, Policy, Step, StepRollUp, Task
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.gates import probe_now
from orchestration.transitions.holds import hold, release
from tests.engine import claimed, new_task, run_to_end, step_of
from tests.operators import browser, person, staffed, words

pytestmark = pytest.mark.django_db
ADDRESS = "/ops/agents/"
PROBE = "/ops/agents/greeter/probe/"


def holder(name="ann"):
    return browser(person(name, "operate", "hold"))


def opened(agent="greeter", **fields):
    values = {"state": "open", "trips": 1, "probe_at": DatabaseNow() + timedelta(seconds=300)}
    Gate.objects.filter(agent=agent).update(**{**values, **fields})


def test_an_agent_shows_its_gate_load_and_times():
    staffed()
    run_to_end(new_task())
    new_task()
    claimed()
    new_task()
    StepRollUp.objects.create(
        span=60, start=DatabaseNow() - timedelta(minutes=5), workflow="greet", step="hello",
        direction="do", agent="greeter", done=20, took=buckets([0.05] * 18 + [2.0] * 2),
    )  # fmt: skip
    Gate.objects.filter(agent="greeter").update(slots=[[time.time(), 12, 4, 0]])
    page = words(browser(person("ann", "operate")).get(ADDRESS))
    assert "greeter breaker closed In flight 1 of 100" in page
    assert "Waiting 1" in page
    assert "4 of the last 16 failed; opens at 8" in page
    assert "Nothing is held" in page
    assert "Hold" not in page
    took = re.search(r"Takes, p50 / p95 (\d+) ms / ([\d.]+) s", page)
    assert took
    assert 45 < int(took[1]) < 55
    assert 1.8 < float(took[2]) < 2.2


def test_a_retry_whose_time_has_not_come_does_not_wait_for_its_agent():
    staffed()
    later = step_of(new_task())
    Step.objects.filter(id=later.id).update(
        run_after=DatabaseNow() + timedelta(hours=1),
        pending_since=DatabaseNow() - timedelta(hours=1),
    )
    client = browser(person("ann", "operate"))
    assert re.search(
        r"greeter breaker closed .*? Waiting 0 Oldest waits \u2013 ", words(client.get(ADDRESS))
    )
    new_task()
    assert re.search(r"Waiting 1 Oldest waits \d s ", words(client.get(ADDRESS)))
    assert "no failure counted" in words(client.get("/ops/"))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, r"greeter breaker open Too many of its calls failed; probe"),
        ({"state": "half_open", "probe_at": None}, "greeter breaker half-open"),
        (
            {"state": "recovering", "probe_at": None, "allowance": 16},
            "Recovery 16 of 100 at a time",
        ),
    ],
)
def test_a_breaker_that_is_not_closed_says_why_and_what_comes_next(fields, said):
    staffed()
    opened(**fields)
    assert said in words(holder().get(ADDRESS))


def test_a_hold_shows_who_and_why_at_its_agent():
    staffed()
    hold(agent="greeter", actor="olga", reason="they move")
    page = words(holder().get(ADDRESS))
    assert "greeter held Held by olga because: they move." in page
    assert "Release…" in page


def test_an_agent_without_a_worker_says_so():
    assert "No worker serves its queue: start one." in holder().get(ADDRESS).text


def test_a_probe_goes_at_once_by_name_and_with_a_reason():
    client = holder()
    new_task()
    opened(paused_until=DatabaseNow() + timedelta(seconds=600))
    assert claimed() == []
    assert PROBE in client.get(ADDRESS).text
    page = words(client.get(PROBE))
    assert "exactly one request" in page
    assert "A probe disregards that" in page
    assert client.post(PROBE, {"reason": " "}).status_code == 422
    assert client.post(PROBE, {"reason": "they say it is back"}).status_code == 303
    event = Event.objects.get(kind="probe")
    assert (event.actor, event.reason, event.detail, event.task) == (
        "ann", "they say it is back", {"agent": "greeter"}, None,
    )  # fmt: skip
    late = holder("bob").post(PROBE, {"reason": "me too"})
    assert late.status_code == 409
    assert "<strong>ann</strong> asked for a probe at once" in " ".join(late.text.split())
    new_task()
    (request,) = claimed()  # exactly one
    assert claimed() == []
    assert request.name == "hello"
    assert Gate.objects.get(agent="greeter").state == "half_open"


@pytest.mark.parametrize("state", ["closed", "half_open", "recovering"])
def test_a_breaker_that_is_not_open_is_not_probed(state):
    opened(state=state, probe_at=None)
    client = holder()
    assert PROBE not in client.get(ADDRESS).text
    for answer in (client.get(PROBE), client.post(PROBE, {"reason": "why not"})):
        assert answer.status_code == 409
    assert probe_now("greeter", actor="ann", reason="why not") is not None
    assert not Event.objects.exists()


def test_an_agent_that_is_not_there_has_no_probe():
    assert holder().get("/ops/agents/nobody/probe/").status_code == 404


def queries_of(client) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(ADDRESS).status_code == 200
    return len(captured)


def test_why_a_task_was_held_is_told_without_what_is_personal(monkeypatch):
    declared = replace(registry.workflows["greet"], personal=[field("name")])
    monkeypatch.setitem(registry.workflows, "greet", declared)
    for _ in range(2):
        task = new_task(data={"name": "Ada Lovelace"})
        held = hold(task=task.id, actor="olga", reason="Ada Lovelace asked for it")
    release(held.id, actor="olga", reason="Ada Lovelace is back")
    viewer = browser(person("vic", "operate"))
    assert "[hidden] asked for it" in viewer.get("/ops/agents/").text
    first = Task.objects.earliest("id")
    for address in ("/ops/agents/", "/ops/tasks/", f"/ops/tasks/{first.id}/"):
        assert "Lovelace" not in viewer.get(address).text
    trusted = browser(person("tom", "operate", "see_personal")).get("/ops/agents/")
    assert "Ada Lovelace is back" in trusted.text


def test_many_agents_and_holds_cost_no_more_queries_than_few():
    client = holder()
    hold(agent="greeter", actor="olga", reason="they move")
    hold(task=new_task().id, actor="olga", reason="wait")
    few = queries_of(client)
    Policy.objects.bulk_create(Policy(agent=f"agent-{number}") for number in range(40))
    Gate.objects.bulk_create(Gate(agent=f"agent-{number}") for number in range(40))
    for number in range(20):
        hold(task=new_task().id, actor="olga", reason=f"wait {number}")
        run_to_end(new_task())
    Step.objects.filter(process_state="pending").update(agent="agent-7")
    assert queries_of(client) == few


def test_the_page_polls_itself_and_is_still_while_nothing_changes():
    client = holder()
    page = client.get(ADDRESS).text
    address = page.partition('hx-get="')[2].partition('"')[0].replace("&amp;", "&")
    assert address.startswith(ADDRESS)
    again = client.get(address, headers={"HX-Request": "true"})
    assert again.status_code == 204
    hold(agent="greeter", actor="olga", reason="they move")
    changed = client.get(address, headers={"HX-Request": "true"})
    assert changed.status_code == 200
    assert "they move" in changed.text
    assert reverse("ops:agents") in changed.text
