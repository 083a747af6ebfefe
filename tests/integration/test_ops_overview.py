"""What the overview shows: what needs attention, what waits, who is at work."""

import re
from datetime import timedelta

import pytest
from django.db.models import F
from django.urls import reverse

from orchestration import presence, queues
from orchestration.models import Lease, Policy, Step, Submission, Task, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.queries import CAP
from orchestration.supervisor import sweep
from orchestration.transitions import hold
from tests.engine import claimed, in_error, new_task, run_to_end
from tests.operators import LEADER, fail, operator, press, staffed, words

pytestmark = pytest.mark.django_db


@pytest.fixture
def client():
    return operator()


def test_the_overview_counts_and_names_what_needs_attention(client):
    run_to_end(new_task())
    step = in_error(new_task("bad-1"))
    page = words(client.get("/ops/"))
    assert "1 processed" in page
    assert "1 error" in page
    assert "greet: hello failed (rejected_code)" in page
    assert "bad-1 greet hello greeter rejected_code it was rejected" in page
    assert reverse("ops:task", args=[step.task_id]) in client.get("/ops/").text


def test_an_alert_says_how_many_suffer_now_and_leads_to_them(client):
    first, second = in_error(new_task("bad-1")), in_error(new_task("bad-2"))
    new_task("good")
    press(client, first)
    page = client.get("/ops/")
    assert "1 step 2 times" in words(page)
    found = client.get(f"/ops/tasks/?alert={Step.objects.get(id=second.id).alert_id}")
    assert "bad-2" in found.text
    assert "bad-1" not in found.text
    assert "good" not in found.text


def test_a_retry_says_when_and_how_often_it_failed(client):
    new_task("slow-1")
    Policy.objects.filter(agent="greeter").update(backoff=100, backoff_cap=100)
    fail(claimed(), threshold=4)
    page = words(client.get("/ops/"))
    assert re.search(r"slow-1 greet hello greeter again in \d+ s , failure 1 of 4", page)


def test_a_gate_says_how_full_it_is_and_why_it_is_shut(client):
    for _ in range(3):
        new_task()
    Policy.objects.filter(agent="greeter").update(window=2)
    claimed()
    page = words(client.get("/ops/"))
    assert re.search(r"greeter open 2 of 2 1 \d+ s", page)
    hold(agent="greeter", actor="olga", reason="they are moving house")
    assert "greeter shut held by olga because: they are moving house 2 of 2" in words(
        client.get("/ops/")
    )


def test_the_oldest_waiting_is_found_among_all_priorities(client):
    old, _ = new_task(priority=0), new_task(priority=5)
    Step.objects.filter(task=old, process_state="pending").update(
        pending_since=DatabaseNow() - timedelta(minutes=50)
    )
    assert re.search(r"greeter open 0 of 100 2 5\d min|greeter open 0 of 100 2 50 min",
                     words(client.get("/ops/")))  # fmt: skip


def test_processes_are_shown_alive_or_silent(client):
    staffed()
    silent = Worker.objects.filter(instance="greeter-1")
    silent.update(seen_at=DatabaseNow() - timedelta(seconds=30), clock_offset=-300)
    page = words(client.get("/ops/"))
    assert re.search(r"greeter greeter-1 silent 30 s ago 300 s ahead", page)
    assert "supervisor-1 leads the supervisors (epoch 1)" in page
    assert "scheduler scheduler-1 alive" in page
    assert "No worker serves “greeter”" in page


def test_no_strip_when_all_is_well(client):
    staffed()
    assert 'class="strip error"' not in client.get("/ops/").text


def test_a_process_reports_itself(client):
    presence.report("scheduler")
    assert "scheduler" in words(client.get("/ops/"))
    assert "“scheduler”" not in words(client.get("/ops/"))


def test_no_leader_is_said(client):
    staffed()
    Lease.objects.update(expires_at=F("renewed_at") - timedelta(seconds=1))
    page = words(client.get("/ops/"))
    assert "No supervisor leads" in page
    assert "The last was supervisor-1 (epoch 1)" in page


def test_redis_down_is_said(client, settings, tmp_path):
    staffed()
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    queues._connection.cache_clear()
    try:
        page = words(client.get("/ops/"))
    finally:
        del settings.REDIS_URL
        queues._connection.cache_clear()
    assert "Redis is down: nothing is lost, nothing is processed." in page


def test_submissions_set_aside_are_shown_with_their_reason(client):
    Submission.objects.create(workflow="greet", reference="waiting-1", data={})
    Submission.objects.create(
        workflow="greet",
        reference="odd-1",
        data={},
        refused_at=DatabaseNow(),
        reason="the input has no name",
    )
    page = words(client.get("/ops/"))
    assert "odd-1 greet the input has no name" in page
    assert "1 submission waits to become a task" in page
    assert "waiting-1" not in page


def test_counts_are_capped(client):
    due = DatabaseNow()
    Task.objects.bulk_create(
        Task(workflow="greet", reference=str(number), data={}, complete_by=due)
        for number in range(CAP + 1)
    )
    assert "10,000+ pending" in words(client.get("/ops/"))


def test_late_tasks_are_an_alert_that_leads_to_them(client):
    late = new_task("late-1")
    new_task("early-1")
    Task.objects.filter(id=late.id).update(complete_by=DatabaseNow())
    sweep(LEADER)
    assert "?workflow=greet&amp;overdue=on" in client.get("/ops/").text
    found = client.get("/ops/tasks/?workflow=greet&overdue=on").text
    assert "late-1" in found
    assert "early-1" not in found
