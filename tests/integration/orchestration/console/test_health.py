"""The problems of the system that every page shows, and none while it is healthy."""

from datetime import timedelta

import pytest

from orchestration import conf
from orchestration.console.queries import health
from orchestration.models import Lease, Worker
from orchestration.models.fields import DatabaseNow
from tests.support.engine import in_error, new_task
from tests.support.operators import browser, led, person, staffed
from tests.support.page import POLL, page, poll_of, problems_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def shown(client):
    """Return the codes of the problems that a page shows now."""
    return lambda: list(problems_of(client.get("/ops/tasks/")))


@pytest.mark.parametrize(
    "path", ["/ops/", "/ops/tasks/", "/ops/agents/", "/ops/system/", "/ops/audit/"]
)
def test_banner_of_a_healthy_system_is_empty(client, path):
    staffed()
    assert page(client.get(path)).only("#health").text == ""


def test_banner_appears_and_disappears_with_the_polls(client):
    staffed()
    calm = client.get("/ops/audit/")
    Worker.objects.filter(queue="greeter").delete()
    warned = client.get(poll_of(calm), headers=POLL)
    assert page(warned).only("#health")["hx-swap-oob"] == "true"
    assert "“greeter”" in problems_of(warned)["queues"]
    assert client.get(poll_of(warned), headers=POLL).status_code == 204
    Worker.objects.create(instance="greeter-2", queue="greeter", host="h", pid=2)
    assert problems_of(client.get(poll_of(warned), headers=POLL)) == {}


def test_missing_workers_are_one_problem(shown):
    led()
    assert shown() == ["workers"]


def silent_for(seconds):
    Worker.objects.update(seen_at=DatabaseNow() - timedelta(seconds=seconds))


def test_silent_workers_are_shown_before_they_count_as_dead(client, shown):
    staffed()
    led()
    silent_for(conf.NO_WORKERS_AFTER_S / 2)
    assert shown() == []
    silent_for(conf.NO_WORKERS_AFTER_S + 0.1)
    assert shown() == ["workers"]
    worker = Worker.objects.filter(queue="greeter")
    worker.update(seen_at=DatabaseNow())  # one is enough: the others may only be slow
    assert shown() == []
    silent_for(conf.WORKER_DEAD_AFTER_S + 0.1)
    worker.update(seen_at=DatabaseNow())
    silent = problems_of(client.get("/ops/tasks/"))["queues"]
    assert "“alerts”" in silent
    assert "“greeter”" not in silent


def test_supervisor_does_not_count_as_a_worker(shown):
    led()
    Worker.objects.create(instance="supervisor-1", queue="supervisor", host="h", pid=1)
    assert shown() == ["workers"]


def test_missing_leader_is_shown(shown):
    staffed()
    Lease.objects.filter(name="supervisor").update(expires_at=DatabaseNow())
    assert shown() == ["supervisor"]
    led()
    Lease.objects.filter(name="housekeeper").update(expires_at=DatabaseNow())
    assert shown() == ["housekeeper"]


def test_scheduled_processes_are_not_missing_between_two_sweeps(client, shown):
    staffed()
    Lease.objects.update(
        expires_at=DatabaseNow(), next_sweep_due=DatabaseNow() + timedelta(seconds=60)
    )
    assert shown() == []
    leaders = page(client.get("/ops/system/")).all('[data-leads="scheduled"]')
    assert [leader["data-leader"] for leader in leaders] == ["supervisor", "housekeeper"]
    Lease.objects.update(next_sweep_due=DatabaseNow())
    assert shown() == ["supervisor", "housekeeper"]


def test_slow_database_is_shown(shown, monkeypatch):
    staffed()
    monkeypatch.setattr(health, "SLOW", 0.0)
    assert shown() == ["database"]


def attention(response) -> str:
    return page(response).only("#nav")["data-attention"]


def test_navigation_counts_tasks_in_error(client):
    before = client.get("/ops/system/")
    assert attention(before) == ""
    in_error(new_task())
    in_error(new_task())
    polled = client.get(poll_of(before), headers=POLL)
    assert attention(polled) == "2"
    assert page(polled).only("#nav-tasks").numbers() == [2]


def test_user_without_permission_sees_no_health():
    in_error(new_task())
    refused = browser(person("pat")).get("/ops/")
    assert refused.status_code == 403
    assert problems_of(refused) == {}
    assert page(refused).only("#nav-tasks").numbers() == []
