"""The system page: queues, backlog, processes and the data audit; with and without Redis."""

from datetime import timedelta
from uuid import uuid4

import pytest

from orchestration.console.queries.system import system
from orchestration.messaging import queues
from orchestration.models import (
    AuditRun,
    DeadLetter,
    StatusMessage,
    Submission,
    TaskRequest,
    Worker,
)
from orchestration.models.fields import DatabaseNow
from tests.support.engine import new_task
from tests.support.operators import staffed
from tests.support.page import page, problems_of, query_count

pytestmark = pytest.mark.django_db
ADDRESS = "/ops/system/"


def queues_of(response) -> dict[str, list[str]]:
    """Return the cells of each queue: its workers, and with Redis what is in it."""
    rows = page(response).section("h-queues").rows()
    return {name: cells for name, *cells in rows}


def test_healthy_system_lists_processes_and_roles(client):
    staffed()
    Worker.objects.filter(queue="supervisor").update(instance="supervisor-1")
    queues.ring("greeter", [b"one", b"two"])
    response = client.get(ADDRESS)
    shown = page(response)
    assert queues_of(response)["greeter"][:4] == ["1", "0", "2", "1"]
    assert queues_of(response)["scheduler"][:4] == ["1", "0", "0", "0"]
    assert queues_of(response)["greeter"][4] != queues_of(response)["scheduler"][4]  # rings
    for name in ("supervisor", "housekeeper"):
        leader = shown.only(f'[data-leader="{name}"]')
        assert leader["data-leads"] == "yes"
        assert f"{name}-1 (epoch" in leader.text
        assert "every 1 s" in leader.text
    leads = [row[:3] for row in shown.section("h-processes").rows() if "leads" in row[1]]
    assert ["supervisor", "supervisor-1 leads", "h"] in leads
    assert shown.section("h-audit").all(".empty")
    assert shown.all("[data-redis]") == []
    assert problems_of(response) == {}


def test_what_was_set_aside_leads_to_its_dead_letters(client):
    staffed()
    task = {"workflow": "greet", "reference": "t-1", "refused_at": DatabaseNow(), "reason": "no"}
    Submission.objects.create(**task, data={})
    TaskRequest.objects.create(**task, request=uuid4(), what="undo")
    DeadLetter.objects.create(queue="scheduler", body="{}", reason="no", tries=9)
    shown = page(client.get(ADDRESS))
    for figure in ("submissions-refused", "requests-refused", "letters"):
        (card,) = shown.only(f'[data-figure="{figure}"]').all("a")
        assert card.only("b").text == "1"
        listed = page(client.get(card["href"])).all('tr[id^="letter-"]')
        assert len(listed) == 1


def test_request_that_waits_for_a_person_does_not_count_as_backlog():
    ago = DatabaseNow() - timedelta(hours=1)
    aside = Submission.objects.create(
        workflow="greet", reference="7", data={}, refused_at=ago, reason="no"
    )
    TaskRequest.objects.create(
        workflow="greet", reference="7", request=uuid4(), what="undo", created_at=ago
    )
    backlogs = system().backlogs
    assert (backlogs.requests, backlogs.oldest_request) == (0, None)
    aside.delete()
    backlogs = system().backlogs
    assert (backlogs.requests, backlogs.oldest_request is None) == (1, False)


def test_web_servers_are_processes_and_no_queues(client):
    staffed()
    Worker.objects.create(instance="web-1", queue="web", host="h", pid=1)
    response = client.get(ADDRESS)
    assert "web" not in queues_of(response)
    assert ["web", "web-1"] in [row[:2] for row in page(response).section("h-processes").rows()]


def test_killed_process_is_replaced_once_another_was_started_there(client):
    staffed()
    long_ago = DatabaseNow() - timedelta(seconds=30)
    for instance, host in (("greeter-0", "h"), ("greeter-9", "elsewhere")):
        Worker.objects.create(
            instance=instance, queue="greeter", host=host, pid=2, seen_at=long_ago,
            started_at=long_ago,
        )  # fmt: skip
    rows = page(client.get(ADDRESS)).section("h-processes").all("tr")
    replaced = [row.only("code").text for row in rows if row.all("[data-replaced]")]
    assert replaced == ["greeter-0"]
    silent = [row.only("code").text for row in rows if "silent" in row.texts(".badge")]
    assert silent == ["greeter-9"]


def test_page_without_redis_shows_what_still_works(client, settings):
    staffed()
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    response = client.get(ADDRESS)
    assert list(problems_of(response)) == ["redis"]
    assert "Submissions are still accepted" in page(response).only("[data-redis]").text
    assert queues_of(response)["greeter"] == ["1", "0"]  # and nothing of its messages


def test_redis_that_hangs_delays_one_page_only(client, hanging_redis):
    staffed()
    for address in (ADDRESS, *["/ops/"] * 3):
        assert list(problems_of(client.get(address))) == ["redis"]
    assert hanging_redis() == 1


def test_silent_worker_and_wrong_clock_are_shown(client):
    Worker.objects.create(
        instance="greeter-9", queue="greeter", host="h", pid=1, clock_offset=300,
        seen_at=DatabaseNow() - timedelta(minutes=1),
    )  # fmt: skip
    response = client.get(ADDRESS)
    shown = page(response)
    assert "supervisor" in problems_of(response)
    assert queues_of(response)["greeter"][:2] == ["none", "1"]
    (process,) = shown.section("h-processes").rows()
    assert process[:4] == ["greeter", "greeter-9", "h", "1"]
    assert process[4].startswith("silent 1 min")
    assert "5 min behind" in shown.only('[data-clock="greeter-9"]').text


def test_ejected_worker_is_shown(client):
    staffed()
    since = DatabaseNow() - timedelta(minutes=5)
    Worker.objects.create(
        instance="greeter-9", queue="greeter", host="h", pid=1, stepped_back_at=since
    )
    processes = page(client.get(ADDRESS)).section("h-processes")
    ejected = [row for row in processes.rows() if "stepped back" in row[4]]
    assert [row[1] for row in ejected] == ["greeter-9"]
    assert "stepped back 5 min" in ejected[0][4]


def test_queued_messages_are_counted_with_their_age(client):
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
    shown = page(client.get(ADDRESS))
    figures = {element["data-figure"]: element.numbers() for element in shown.all("[data-figure]")}
    assert figures == {  # how many, and how old the oldest is in minutes
        "submissions": [1, 5], "submissions-refused": [1], "statuses": [1, 5], "notifications": [0],
    }  # fmt: skip


def test_last_audit_is_shown_with_its_violations(client):
    staffed()
    AuditRun.objects.create(by="hourly", tasks=7, ended_at=DatabaseNow(), violations=[])
    audit = page(client.get(ADDRESS)).section("h-audit")
    assert len(audit.all(".badge.success")) == 1
    assert audit.rows() == []
    violation = {
        "invariant": 3,
        "reference": "t-1",
        "problem": "was taken twice",
        "remedy": "give back",
    }
    AuditRun.objects.create(by="ann", tasks=8, ended_at=DatabaseNow(), violations=[violation] * 60)
    audit = page(client.get(ADDRESS)).section("h-audit")
    assert audit.only(".badge.error").numbers() == [60]
    assert audit.rows() == [["3", "t-1", "was taken twice", "give back"]] * 50
    assert "checked 8 tasks" in audit.text
    # one of what has changed since says nothing of these
    AuditRun.objects.create(by="hourly", since=DatabaseNow(), ended_at=DatabaseNow(), tasks=2)
    audit = page(client.get(ADDRESS)).section("h-audit")
    assert audit.only(".badge.error").numbers() == [60]
    assert "checked 2 tasks" in audit.text


def test_queries_are_independent_of_the_number_of_processes(client):
    staffed()
    few = query_count(client, ADDRESS)
    Worker.objects.bulk_create(
        Worker(instance=f"w-{number}", queue=f"q-{number % 9}", host="h", pid=number)
        for number in range(200)
    )
    assert query_count(client, ADDRESS) == few
