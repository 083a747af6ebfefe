"""What the overview shows: what needs attention, what waits, who is at work."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import presence, rollups
from orchestration.models import Lease, Operation, Policy, Submission, Task, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.queries import CAP
from orchestration.queries.trends import RANGES
from orchestration.transitions.holds import hold
from orchestration.transitions.record import record
from tests.engine import claimed, in_error, new_task, reply_to, run_to_end, sweep, watch_of
from tests.operators import LEADER, browser, fail, operator, person, press, staffed, words

pytestmark = pytest.mark.django_db


@pytest.fixture
def client():
    return operator()


def test_the_overview_counts_and_names_what_needs_attention(client):
    run_to_end(new_task())
    step = in_error(new_task("bad-1"))
    page = words(client.get("/ops/"))
    assert "1 task has stopped in error." in page
    assert "1 need attention" in page
    assert "greet: hello failed (rejected_code)" in page
    assert "bad-1 greet hello greeter rejected_code" in page
    assert reverse("ops:task", args=[step.task_id]) in client.get("/ops/").text


def test_what_services_said_is_for_those_who_may_see_personal_data(client):
    in_error(new_task("bad-1"))
    assert "it was rejected" not in words(client.get("/ops/"))
    trusted = words(browser(person("bea", "operate", "see_personal")).get("/ops/"))
    assert "rejected_code it was rejected" in trusted


def test_what_fails_is_told_by_its_cause(client):
    in_error(new_task("bad-1"))
    in_error(new_task("bad-2"))
    sweep(LEADER)
    page = words(client.get("/ops/"))
    assert re.search(r"New greet: hello failed \(rejected_code\) 2 . 2 2 .*? \d+ s ago", page)


def test_an_agent_that_is_held_back_is_shown_with_the_reason(client):
    assert "Agents that are held back" not in client.get("/ops/").text
    hold(agent="greeter", actor="olga", reason="they are moving house")
    page = words(client.get("/ops/"))
    assert "1 agent held back" in page
    assert re.search(r"held greeter : held by .*olga.*: they are moving house", page)


def test_a_queue_without_a_worker_is_said(client):
    staffed()
    silent = Worker.objects.filter(instance="greeter-1")
    silent.update(seen_at=DatabaseNow() - timedelta(seconds=30))
    page = words(client.get("/ops/"))
    assert "No worker serves “greeter”" in page
    assert "supervisor-1 leads the supervisors (epoch 1)" in page
    presence.report("greeter")
    assert "“greeter”" not in words(client.get("/ops/"))


def test_a_retry_says_when_and_how_often_it_failed(client):
    new_task("slow-1")
    Policy.objects.filter(agent="greeter").update(backoff=100, backoff_cap=100)
    fail(claimed(), threshold=4)
    page = words(client.get("/ops/"))
    assert re.search(r"slow-1 greet hello greeter again in \d+ s , failure 1 of 4", page)


def test_no_strip_when_all_is_well(client):
    staffed()
    assert 'class="strip error"' not in client.get("/ops/").text


def test_no_leader_is_said(client):
    staffed()
    Lease.objects.update(expires_at=F("renewed_at") - timedelta(seconds=1))
    page = words(client.get("/ops/"))
    assert "No supervisor leads" in page
    assert "The last was supervisor-1 (epoch 1)" in page
    assert "No housekeeper leads" in page
    assert "The last was housekeeper-1 (epoch 1)" in page


def test_redis_down_is_said(client, settings, tmp_path):
    staffed()
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    page = words(client.get("/ops/"))
    assert "Redis is down: whatever was accepted is safe" in page


def test_submissions_set_aside_are_counted_and_a_link_away(client):
    Submission.objects.create(workflow="greet", reference="waiting-1", data={})
    Submission.objects.create(
        workflow="greet",
        reference="odd-1",
        data={},
        refused_at=DatabaseNow(),
        reason="the input has no name",
    )
    page = words(client.get("/ops/"))
    assert "1 dead letter : submissions and messages that fail, or were set aside" in page
    assert "1 submission waits to become a task" in page
    assert "waiting-1" not in page


def test_counts_are_capped(client):
    due = DatabaseNow()
    new = (
        Task(workflow="greet", reference=str(number), data={}, complete_by=due)
        for number in range(CAP + 1)
    )
    Task.objects.bulk_create(new, batch_size=1000)  # none takes longer than an idle transaction may
    assert "1,000+ under way" in words(client.get("/ops/"))


def rolled_up():
    rollups.count(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


def test_all_is_calm_when_nothing_is_wrong(client):
    staffed()
    run_to_end(new_task())
    rolled_up()
    page = words(client.get("/ops/"))
    assert "Nothing needs you. 1 task went through in the last hour: half within" in page
    for silent in ("Open alerts", "What fails, by cause", "Stopped last", "Operations under way"):
        assert silent not in page


@pytest.mark.parametrize("key", [*RANGES, "", "nonsense"])
def test_charts_say_what_happened_in_words_too(client, key):
    run_to_end(new_task())
    in_error(new_task())
    rolled_up()
    response = client.get("/ops/", {"range": key})
    page = words(response)
    chosen = RANGES.get(key, RANGES["1h"])
    assert f"The last {chosen.past}" in page
    # created 2, processed 1, undone 0, in error 1: the drawing's titles, and the table
    assert re.search(rf"Tasks per {chosen.per}.*: created 2, processed 1, in error 1 ", page)
    assert re.search(
        r"From \(UTC\) created processed undone in error \d\d \w+ \d\d:\d\d 2 1 0 1", page
    )
    assert re.search(r"hello greet greeter 2 50.0 %", page)
    assert f'href="?range={chosen.key}#h-trends" aria-current="true"' in response.text
    assert " style=" not in response.text


def test_what_people_did_is_told(client):
    step = in_error(new_task("bad-1"))
    press(client, step)
    assert "ann : Resubmitted, hello of bad-1 “it is repaired”" in words(client.get("/ops/"))


def test_the_leaders_last_sweep_is_told(client):
    staffed()
    new_task("slow-1")
    record([reply_to(request, "transient") for request in claimed()])
    watch_of("supervisor-1").step(0.0)
    page = words(client.get("/ops/"))
    assert "Its last sweep ended within the last 10 s." in page
    assert re.search(r"\d s ago , a sweep had something to do: 1 retried", page)


def test_the_overview_costs_the_same_however_much_there_is(client):
    def queries():
        with CaptureQueriesContext(connection) as seen:
            client.get("/ops/?range=24h")
        return len(seen)

    staffed()
    press(client, in_error(new_task()))
    in_error(new_task())
    sweep(LEADER)
    client.get("/ops/")  # whatever is looked up once
    before = queries()
    for number in range(3):
        press(client, in_error(new_task(f"bad-{number}")))
        in_error(new_task())
        run_to_end(new_task())
        new_task()
    Operation.objects.create(act="hold", state="waiting", reason="r", selection={}, actor="ann")
    rolled_up()
    assert queries() == before


def test_late_tasks_are_an_alert_that_leads_to_them(client):
    late = new_task("late-1")
    new_task("early-1")
    Task.objects.filter(id=late.id).update(complete_by=DatabaseNow())
    sweep(LEADER)
    assert "?q=workflow:greet%20is:overdue" in client.get("/ops/").text
    found = client.get("/ops/tasks/?q=workflow:greet%20is:overdue").text
    assert "late-1" in found
    assert "early-1" not in found
