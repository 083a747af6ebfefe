"""What every page says when the machinery is unwell, and that it says nothing when it is not."""

import re
from datetime import timedelta

import pytest

from orchestration import conf
from orchestration.models import Lease, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.queries import health
from tests.engine import in_error, new_task
from tests.operators import browser, led, operator, person, staffed, words

POLL = {"HX-Request": "true"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def client():
    return operator()


def strip(response) -> str:
    """Return what the strip says."""
    found = re.search(r'<div id="health"[^>]*>(.*?)</div>', response.text, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split()) if found else "no strip"


def poll_of(response) -> str:
    return re.findall(r'hx-get="([^"]+)"', response.text)[0].replace("&amp;", "&")


@pytest.mark.parametrize(
    "path", ["/ops/", "/ops/tasks/", "/ops/agents/", "/ops/system/", "/ops/audit/"]
)
def test_no_page_says_anything_while_all_is_well(client, path):
    staffed()
    assert strip(client.get(path)) == ""


def test_trouble_comes_and_goes_with_the_polls(client):
    staffed()
    calm = client.get("/ops/audit/")
    Worker.objects.filter(queue="greeter").delete()
    told = client.get(poll_of(calm), headers=POLL)
    assert 'hx-swap-oob="true"' in told.text
    assert "No worker serves “greeter”: start one." in strip(told)
    assert client.get(poll_of(told), headers=POLL).status_code == 204
    Worker.objects.create(instance="greeter-2", queue="greeter", host="h", pid=2)
    assert strip(client.get(poll_of(told), headers=POLL)) == ""


def test_that_no_worker_is_there_at_all_is_one_sentence(client):
    led()
    said = strip(client.get("/ops/tasks/"))
    assert said.startswith("No worker is there: whatever was accepted is safe")
    assert "serves" not in said


def silent_for(seconds):
    Worker.objects.update(seen_at=DatabaseNow() - timedelta(seconds=seconds))


def test_that_all_workers_fell_silent_is_said_before_any_of_them_is_given_up(client):
    staffed()
    led()
    silent_for(conf.ALL_SILENT - 2)
    assert strip(client.get("/ops/tasks/")) == ""
    silent_for(conf.ALL_SILENT + 0.1)
    assert strip(client.get("/ops/tasks/")).startswith("No worker is there")
    one = Worker.objects.filter(queue="greeter")
    one.update(seen_at=DatabaseNow())  # one is enough: the others may only be slow
    assert strip(client.get("/ops/tasks/")) == ""
    silent_for(conf.ALIVE + 0.1)
    one.update(seen_at=DatabaseNow())
    assert strip(client.get("/ops/tasks/")).startswith("No worker serves “alerts”")


def test_a_supervisor_is_no_worker(client):
    led()
    Worker.objects.create(instance="supervisor-1", queue="supervisor", host="h", pid=1)
    assert strip(client.get("/ops/tasks/")).startswith("No worker is there")


def test_that_nobody_leads_is_said(client):
    staffed()
    Lease.objects.filter(name="supervisor").update(expires_at=DatabaseNow())
    assert strip(client.get("/ops/tasks/")).startswith("No supervisor leads: what works goes on")
    led()
    Lease.objects.filter(name="housekeeper").update(expires_at=DatabaseNow())
    assert strip(client.get("/ops/tasks/")).startswith("No housekeeper leads: tasks go on")


def test_those_that_a_schedule_starts_are_not_missed_between_two_sweeps(client):
    staffed()
    Lease.objects.update(
        expires_at=DatabaseNow(), awaited_until=DatabaseNow() + timedelta(seconds=60)
    )
    assert strip(client.get("/ops/tasks/")) == ""
    assert "A schedule starts the supervisor" in client.get("/ops/system/").text
    Lease.objects.update(awaited_until=DatabaseNow())
    assert strip(client.get("/ops/tasks/")).startswith("No supervisor leads")


def test_a_slow_database_is_said(client, monkeypatch):
    staffed()
    monkeypatch.setattr(health, "SLOW", 0.0)
    assert strip(client.get("/ops/tasks/")).startswith("The database answers slowly")


def test_the_navigation_counts_what_waits_for_people(client):
    page = client.get("/ops/system/")
    assert 'data-attention=""' in page.text
    in_error(new_task())
    in_error(new_task())
    told = client.get(poll_of(page), headers=POLL)
    assert 'data-attention="2"' in told.text
    assert "Tasks 2" in words(told)


def test_who_may_not_come_in_learns_nothing_of_it():
    in_error(new_task())
    refused = browser(person("pat")).get("/ops/")
    assert refused.status_code == 403
    assert strip(refused) == ""
    assert "Tasks 1" not in words(refused)
