"""Polls: empty while nothing changes; and how many queries the pages cost."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration.models import Policy, Submission, Worker
from orchestration.models.fields import DatabaseNow
from orchestration.transitions.replies import record
from tests.support.engine import claimed, in_error, new_task, reply_to, run_to_end
from tests.support.operators import fail, led, press, staffed
from tests.support.page import POLL, poll_of, query_count

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/ops/", "/ops/tasks/?state=error", "task"])
def test_poll_is_empty_until_something_changes(client, path):
    staffed()
    step = in_error(new_task("t-1"))
    path = reverse("ops:task", args=[step.task_id]) if path == "task" else path
    address = poll_of(client.get(path))
    unchanged = client.get(address, headers=POLL)
    assert (unchanged.status_code, unchanged.content) == (204, b"")
    press(client, step)
    (request,) = claimed()
    record([reply_to(request, "rejected", code="refused_again")])
    changed = client.get(address, headers=POLL)
    assert changed.status_code == 200
    assert "refused_again" in changed.text
    assert "<html" not in changed.text
    assert 'id="live"' in changed.text
    assert "HX-Request" in changed["Vary"]
    assert client.get(poll_of(changed), headers=POLL).status_code == 204


def test_poll_is_empty_when_only_time_passes(client):
    new_task("t-1")
    claimed()
    staffed()
    address = poll_of(client.get("/ops/"))
    Worker.objects.update(seen_at=DatabaseNow())
    led()
    assert client.get(address, headers=POLL).status_code == 204


def test_address_of_a_poll_opens_as_a_page(client):
    response = client.get(poll_of(client.get("/ops/tasks/?state=error")))
    assert response.status_code == 200
    assert "<html" in response.text


def test_pages_change_nothing(client):
    step = in_error()
    with CaptureQueriesContext(connection) as queries:
        for path in ("/ops/", "/ops/tasks/", reverse("ops:task", args=[step.task_id])):
            client.get(path)
    reads = ("SELECT", "SAVEPOINT", "RELEASE SAVEPOINT", "SET LOCAL")  # a search has a time limit
    written = [query["sql"] for query in queries if not query["sql"].lstrip().startswith(reads)]
    changes = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE)\b")
    assert [
        sql for sql in written if not sql.lstrip().startswith("WITH") or changes.search(sql)
    ] == []


def one_of_each(number):
    """Make one more row of each list of a page."""
    in_error(new_task(f"bad-{number}"), outcome="rejected")
    new_task(f"slow-{number}")
    fail(claimed(), threshold=9)
    new_task(f"at-work-{number}")
    claimed()
    run_to_end(new_task(f"done-{number}"))
    new_task(f"due-{number}")
    Worker.objects.create(instance=f"w-{number}", queue="scheduler", host="h", pid=1)
    Submission.objects.create(
        workflow="greet", reference=f"s-{number}", data={}, refused_at=DatabaseNow(), reason="odd"
    )


@pytest.mark.parametrize("path", ["/ops/", "/ops/tasks/", "/ops/tasks/?step=hello&state=error"])
def test_queries_of_a_page_are_independent_of_its_rows(client, path):
    Policy.objects.filter(agent="greeter").update(
        window=1000, backoff=1000, backoff_cap=1000, time_allowed=1000
    )
    one_of_each(0)
    with_one = query_count(client, path)
    for number in range(1, 12):
        one_of_each(number)
    # a first page that is not full is counted by its rows
    counted = path.startswith("/ops/tasks/")
    assert query_count(client, path) - with_one in (0, counted)
    assert with_one <= 39


def test_queries_of_a_task_are_independent_of_its_attempts(client):
    task = new_task()
    step = in_error(task)
    address = reverse("ops:task", args=[task.id])
    with_one = query_count(client, address)
    for attempt in range(1, 30):
        press(client, step, attempt=attempt)
        (request,) = claimed()
        record([reply_to(request, "rejected")])
    assert query_count(client, address) <= with_one
    assert with_one <= 25


def test_content_security_policy_allows_no_inline_scripts(client):
    policy = client.get("/ops/")["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    text = client.get("/ops/").text
    assert " style=" not in text
    assert "hx-on" not in text
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
