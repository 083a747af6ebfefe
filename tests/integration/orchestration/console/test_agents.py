"""The agents' page: gates, load and times; a probe at once."""

import re
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestration import registry
from orchestration.api import field
from orchestration.console.statistics.histogram import buckets
from orchestration.models import Event, Gate, Incident, Policy, Step, StepRollUp, Task
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.gates import probe_now
from orchestration.transitions.holds import hold, release
from tests.support.engine import claimed, new_task, run_to_end, step_of
from tests.support.operators import browser, fail, person, staffed
from tests.support.page import POLL, page, poll_of, query_count

pytestmark = pytest.mark.django_db
ADDRESS = "/ops/agents/"
PROBE = "/ops/agents/greeter/probe/"


def holder(name="ann"):
    return browser(person(name, "operate", "hold"))


def opened(agent="greeter", **fields):
    values = {"state": "open", "trips": 1, "probe_at": DatabaseNow() + timedelta(seconds=300)}
    Gate.objects.filter(agent=agent).update(**{**values, **fields})


def card(client, agent="greeter"):
    """Return the card of an agent on the page."""
    return page(client.get(ADDRESS)).only(f"#agent-{agent}")


def fact(card, name):
    return card.only(f'[data-fact="{name}"]')


def test_card_of_an_agent_shows_breaker_load_and_durations():
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
    viewer = browser(person("ann", "operate"))
    shown = card(viewer)
    assert shown.texts(".badge") == ["breaker closed"]
    meter = shown.only("progress")
    assert (meter["value"], meter["max"]) == ("1", "100")
    assert fact(shown, "waiting").text == "1"
    assert fact(shown, "breaker").numbers() == [4, 16, 8]  # failed, of the last, opens at
    took = re.fullmatch(r"(\d+) ms / ([\d.]+) s", fact(shown, "duration").text)
    assert took
    assert 45 < int(took[1]) < 55
    assert 1.8 < float(took[2]) < 2.2
    shown = page(viewer.get(ADDRESS))
    assert shown.only('section[aria-labelledby="h-holds"]').rows() == []
    assert shown.all('[href^="/ops/holds/"]') + shown.all('[action^="/ops/holds/"]') == []


def test_retry_that_is_not_due_does_not_wait_for_its_agent():
    staffed()
    later = step_of(new_task())
    Step.objects.filter(id=later.id).update(
        attempt=1,
        run_after=DatabaseNow() + timedelta(hours=1),
        pending_since=DatabaseNow() - timedelta(hours=1),
    )
    client = browser(person("ann", "operate"))
    shown = card(client)
    assert (fact(shown, "waiting").text, fact(shown, "oldest").text) == ("0", "\u2013")
    new_task()
    shown = card(client)
    assert fact(shown, "waiting").text == "1"
    assert re.fullmatch(r"\d s", fact(shown, "oldest").text)
    (retry,) = page(client.get("/ops/")).section("h-retrying").rows()
    assert ", after 0 of 5 " in retry[2]


@pytest.mark.parametrize(
    ("fields", "badge"),
    [
        ({}, "breaker open"),
        ({"state": "half_open", "probe_at": None}, "breaker half-open"),
        ({"state": "recovering", "probe_at": None, "allowance": 16}, "recovering"),
    ],
)
def test_breaker_that_is_not_closed_shows_its_state(fields, badge):
    staffed()
    opened(**fields)
    assert card(holder()).texts(".badge") == [badge]


def test_open_breaker_explains_itself_and_shows_its_next_probe():
    staffed()
    opened()
    blocked = card(holder()).only("[data-blocked]")
    assert blocked.text.startswith("Too many calls failed; next probe ")
    assert blocked.only("time")


def test_open_breaker_shows_its_most_frequent_failure_and_what_waits():
    for number in range(2):
        new_task(f"lost-{number}")
    fail(claimed(), "unknown", threshold=4)
    Task.objects.update(value=1500, currency="EUR")
    opened()
    cause = card(browser(person("ann", "operate"))).only("[data-cause]")
    incident = Incident.objects.get()
    assert cause.only("a")["href"] == f"/ops/incidents/{incident.id}/"
    assert cause.numbers()[0] == 2
    assert "€30.00" in cause.text


def test_recovering_breaker_shows_its_allowance():
    staffed()
    opened(state="recovering", probe_at=None, allowance=16)
    assert fact(card(holder()), "recovery").numbers() == [16, 100]


def test_hold_shows_user_and_reason_at_its_agent():
    staffed()
    held = hold(agent="greeter", actor="olga", reason="they move")
    shown = card(browser(person("tom", "operate", "see_personal", "hold")))
    assert shown.texts(".badge") == ["held"]
    assert "olga" in shown.only("[data-blocked]").text
    assert "they move" in shown.only("[data-held-because]").text
    assert shown.only(f'[href="/ops/holds/{held.id}/release/"]')


def test_agent_without_a_worker_is_marked():
    assert card(holder()).only("[data-unserved]")


def test_probe_is_sent_at_once_with_user_and_reason():
    client = holder()
    new_task()
    opened(paused_until=DatabaseNow() + timedelta(seconds=600))
    assert claimed() == []
    assert PROBE in client.get(ADDRESS).text
    assert "Retry-After" in client.get(PROBE).text
    assert client.post(PROBE, {"reason": " "}).status_code == 422
    assert client.post(PROBE, {"reason": "they say it is back"}).status_code == 303
    event = Event.objects.get(kind="probe")
    assert (event.actor, event.reason, event.detail, event.task) == (
        "ann", "they say it is back", {"agent": "greeter"}, None,
    )  # fmt: skip
    late = holder("bob").post(PROBE, {"reason": "me too"})
    assert late.status_code == 409
    assert page(late).only("[data-conflict]")["data-conflict"] == "ann"
    new_task()
    (request,) = claimed()  # exactly one
    assert claimed() == []
    assert request.name == "hello"
    assert Gate.objects.get(agent="greeter").state == "half_open"


def test_pause_that_the_service_asked_for_is_ended_at_once():
    client = holder()
    new_task()
    new_task()
    Gate.objects.filter(agent="greeter").update(paused_until=DatabaseNow() + timedelta(hours=1))
    assert claimed() == []
    assert PROBE in client.get(ADDRESS).text
    assert page(client.get(PROBE)).only("[data-paused]")
    assert client.post(PROBE, {"reason": "it was a mistake"}).status_code == 303
    assert Event.objects.get(kind="probe").reason == "it was a mistake"
    assert len(claimed()) == 2
    assert client.post(PROBE, {"reason": "again"}).status_code == 409
    gate = Gate.objects.get(agent="greeter")
    assert (gate.state, gate.paused_until) == ("closed", None)


@pytest.mark.parametrize("state", ["closed", "half_open", "recovering"])
def test_breaker_that_is_not_open_is_not_probed(state):
    opened(state=state, probe_at=None)
    client = holder()
    assert PROBE not in client.get(ADDRESS).text
    for answer in (client.get(PROBE), client.post(PROBE, {"reason": "why not"})):
        assert answer.status_code == 409
    assert probe_now("greeter", actor="ann", reason="why not") is not None
    assert not Event.objects.exists()


def test_unknown_agent_has_no_probe():
    assert holder().get("/ops/agents/unknown/probe/").status_code == 404


def test_reason_of_a_hold_is_shown_without_personal_data(monkeypatch):
    declared = replace(registry.workflows["greet"], personal=[field("name")])
    monkeypatch.setitem(registry.workflows, "greet", declared)
    for _ in range(2):
        task = new_task(data={"name": "Ada Lovelace"})
        held = hold(task=task.id, actor="olga", reason="Ada Lovelace asked for it")
    release(held.id, actor="olga", reason="Ada Lovelace is back")
    viewer = browser(person("vic", "operate"))
    assert "asked for it" not in viewer.get("/ops/agents/").text
    first = Task.objects.earliest("id")
    for address in ("/ops/agents/", "/ops/tasks/", f"/ops/tasks/{first.id}/"):
        assert "asked for it" not in viewer.get(address).text
    trusted = browser(person("tom", "operate", "see_personal")).get("/ops/agents/")
    assert "Ada Lovelace is back" in trusted.text


@pytest.mark.parametrize(
    "target", [{"agent": "greeter"}, {}, {"workflow": "greet", "step": "hello"}]
)
def test_reason_that_a_person_typed_is_part_of_no_sentence_for_viewers(target):
    task = new_task()
    hold(**target, actor="olga", reason="Ada Lovelace asked for it")
    pages = ("/ops/", "/ops/agents/", "/ops/tasks/", f"/ops/tasks/{task.id}/", "/ops/workflows/")
    viewer, trusted = (
        browser(person("vic", "operate")),
        browser(person("tom", "operate", "see_personal")),
    )
    for address in pages:
        assert "Lovelace" not in viewer.get(address).text, address
    shown = [address for address in pages if "Lovelace" in trusted.get(address).text]
    place = "/ops/workflows/" if "step" in target else "/ops/"
    assert {place, "/ops/agents/"} <= set(shown)


def test_queries_are_independent_of_agents_and_holds():
    client = holder()
    hold(agent="greeter", actor="olga", reason="they move")
    hold(task=new_task().id, actor="olga", reason="wait")
    few = query_count(client, ADDRESS)
    Policy.objects.bulk_create(Policy(agent=f"agent-{number}") for number in range(40))
    Gate.objects.bulk_create(Gate(agent=f"agent-{number}") for number in range(40))
    for number in range(20):
        hold(task=new_task().id, actor="olga", reason=f"wait {number}")
        run_to_end(new_task())
    Step.objects.filter(process_state="pending").update(agent="agent-7")
    assert query_count(client, ADDRESS) == few


def test_poll_is_empty_while_nothing_changes():
    client = holder()
    address = poll_of(client.get(ADDRESS))
    assert address.startswith(ADDRESS)
    assert client.get(address, headers=POLL).status_code == 204
    hold(agent="greeter", actor="olga", reason="they move")
    changed = client.get(address, headers=POLL)
    assert changed.status_code == 200
    assert "Held by olga" in changed.text
    assert poll_of(changed).startswith(ADDRESS)
