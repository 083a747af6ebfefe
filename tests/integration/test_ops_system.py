"""The system page: who is at work, what lies, what the audit found; with and without Redis."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration import conf, queues
from orchestration.models import AuditRun, StatusMessage, Submission, Worker
from orchestration.models.fields import DatabaseNow
from tests.engine import new_task
from tests.operators import browser, person, staffed, words

pytestmark = pytest.mark.django_db
ADDRESS = "/ops/system/"


@pytest.fixture
def client():
    return browser(person("ann", "operate"))


def test_a_sound_system_says_who_does_what(client):
    staffed()
    Worker.objects.filter(queue="supervisor").update(instance="supervisor-1")
    queues.ring("greeter", [b"one", b"two"])
    page = words(client.get(ADDRESS))
    assert "greeter 1 0 2 1 rings, or is attended" in page
    assert "scheduler 1 0 0 0 quiet" in page
    assert "supervisor-1 leads, in epoch" in page
    assert "housekeeper-1 leads, in epoch" in page
    assert "sweeps every 1 s" in page
    assert "supervisor-1 leads h" in page
    assert "No audit has run yet" in page
    assert "is down" not in page


def test_without_redis_it_says_what_still_works(client, settings):
    staffed()
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    page = words(client.get(ADDRESS))
    assert "Redis is down" in page
    assert "Submissions are accepted and nothing is lost" in page
    assert "greeter 1 0" in page
    assert "Messages" not in page


@pytest.mark.usefixtures("hanging_redis")
def test_a_redis_that_hangs_costs_one_wait_and_the_next_page_none(client):
    staffed()
    client.get("/ops/audit/")  # a page that is loaded for the first time takes longer
    first, others = timed(client, ADDRESS), [timed(client, "/ops/") for _ in range(3)]
    assert first < 2 * conf.REDIS_LOOK
    assert min(others) < conf.REDIS_LOOK


def timed(client, path):
    begun = time.monotonic()
    assert "Redis is down" in words(client.get(path))
    return time.monotonic() - begun


def test_what_is_wrong_stands_out(client):
    Worker.objects.create(
        instance="greeter-9", queue="greeter", host="h", pid=1, clock_offset=300,
        seen_at=DatabaseNow() - timedelta(minutes=1),
    )  # fmt: skip
    page = words(client.get(ADDRESS))
    assert "No supervisor leads" in page
    assert "greeter none 1" in page
    assert "greeter-9 h 1 silent" in page
    assert "The clock of greeter-9 is 300 s behind" in page


def test_a_worker_that_has_stepped_back_is_shown(client):
    staffed()
    since = DatabaseNow() - timedelta(minutes=5)
    Worker.objects.create(
        instance="greeter-9", queue="greeter", host="h", pid=1, stepped_back_at=since
    )
    page = words(client.get(ADDRESS))
    assert page.count("stepped back") == 1
    assert "stepped back 5 min" in page


def test_what_lies_is_counted_with_its_age(client):
    staffed()
    before = DatabaseNow() - timedelta(minutes=5)
    Submission.objects.create(workflow="greet", reference="s-1", data={}, created_at=before)
    Submission.objects.create(
        workflow="greet", reference="s-2", data={}, refused_at=before, reason="no"
    )
    task = new_task()
    StatusMessage.objects.create(
        reply_to="shop", task=task, number=1, kind="received", created_at=before
    )
    page = words(client.get(ADDRESS))
    assert "1 submissions, the oldest for 5 min" in page
    assert "1 submissions set aside" in page
    assert "1 status messages undelivered, the oldest for 5 min" in page
    assert "0 notices of alerts undelivered" in page


def test_the_last_audit_is_shown_with_what_it_found(client):
    staffed()
    AuditRun.objects.create(by="hourly", tasks=7, ended_at=DatabaseNow(), violations=[])
    assert "nothing found" in words(client.get(ADDRESS))
    found = {"invariant": 3, "reference": "t-1", "trouble": "was taken twice", "mend": "give back"}
    AuditRun.objects.create(by="ann", tasks=8, ended_at=DatabaseNow(), violations=[found] * 60)
    page = words(client.get(ADDRESS))
    assert "60 violations" in page
    assert page.count("was taken twice") == 50
    assert "looked at 8 tasks (ann)" in page


def test_many_processes_cost_no_more_queries_than_few(client):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(ADDRESS).status_code == 200
        return len(captured)

    staffed()
    few = queries()
    Worker.objects.bulk_create(
        Worker(instance=f"w-{number}", queue=f"q-{number % 9}", host="h", pid=number)
        for number in range(200)
    )
    assert queries() == few
