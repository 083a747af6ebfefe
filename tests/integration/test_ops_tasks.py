"""The list of tasks, and the page of one."""

import re
import time

import pytest
from django.db import transaction
from django.http import QueryDict
from django.urls import reverse
from django.utils.html import escape

from orchestration import clock
from orchestration.models import Hold, Policy, Task
from orchestration.models.fields import DatabaseNow
from orchestration.models.hold import Cause
from orchestration.queries.listing import PAGE
from orchestration.transitions.create import NewTask, create
from orchestration.transitions.holds import hold
from orchestration.transitions.record import record
from tests.engine import claimed, in_error, new_task, reply_to, run_to_end
from tests.operators import fail, gave_up, operator, press, words

ROW = r'data-open href="/ops/tasks/[^"?]+">([^<]+)'
HOSTILE = "</td><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"

pytestmark = pytest.mark.django_db


@pytest.fixture
def client():
    return operator()


@pytest.fixture
def _three(client):
    in_error(new_task("a-bad"))
    run_to_end(new_task("a-done"))
    new_task("b-waits")


@pytest.mark.usefixtures("_three")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"a-bad", "a-done", "b-waits"}),
        ("state=error", {"a-bad"}),
        ("state=processed", {"a-done"}),
        ("workflow=greet", {"a-bad", "a-done", "b-waits"}),
        ("workflow=order", set()),
        ("step=hello", {"a-bad", "b-waits"}),
        ("step=again", set()),
        ("agent=greeter", {"a-bad", "b-waits"}),
        ("agent=payment", set()),
        ("reference=a-", {"a-bad", "a-done"}),
        ("reference=a-done", {"a-done"}),
        ("reference=%25", set()),
        ("state=error&step=hello&reference=a", {"a-bad"}),
        ("q=is:overdue", set()),
        ("alert=123456789", set()),
        ("q=a-bad", {"a-bad"}),
        ("q=a-&state=error", {"a-bad"}),
        ("q=state:error step:hel", {"a-bad"}),
        ("q=error:rejected", {"a-bad"}),
        ("q=error:time", set()),
        ("q=attempts:>0 state:error", {"a-bad"}),
        ("q=attempts:>1", set()),
        ("q=is:retrying", set()),
        ("q=is:held", set()),
        ("q=after:1h", {"a-bad", "a-done", "b-waits"}),
        ("q=before:2020-01-01", set()),
        ("q=value:>0", set()),
        ("q=value:0", {"a-bad", "a-done", "b-waits"}),
        ("q=incident:987654", set()),
    ],
)
def test_the_list_is_narrowed_by_its_address(client, query, expected):
    page = client.get(f"/ops/tasks/?{query}").text
    assert set(re.findall(ROW, page)) == expected


@pytest.mark.usefixtures("_three")
@pytest.mark.parametrize("seconds", [7200, -7200])
def test_so_long_ago_is_by_the_databases_clock(client, monkeypatch, seconds):
    clock.measure()
    wrong = time.time() + seconds
    monkeypatch.setattr("time.time", lambda: wrong)
    task = new_task("now")
    found = re.findall(ROW, client.get("/ops/tasks/?q=after:1h").text)
    assert set(found) == {"a-bad", "a-done", "b-waits", "now"}, task.id
    assert re.findall(ROW, client.get("/ops/tasks/?q=before:1h").text) == []


@pytest.mark.usefixtures("_three")
@pytest.mark.parametrize(
    ("held", "cause", "expected"),
    [
        ("greeter", Cause.HAND, {"b-waits"}),
        ("", Cause.HAND, {"b-waits"}),
        ("greeter", Cause.NO_WORKER, {"b-waits"}),
        ("greeter", Cause.BREAKER, set()),  # its breaker is open
        ("payment", Cause.HAND, set()),
    ],
)
def test_what_the_hold_on_an_agent_keeps_is_held_as_its_row_says(client, held, cause, expected):
    ours = hold(agent=held, actor="olga", reason="they move", cause=cause)
    page = client.get("/ops/tasks/?q=is:held").text
    assert set(re.findall(ROW, page)) == expected
    assert ("held by olga because: they move" in page) is bool(expected)
    Hold.objects.filter(id=ours.id).update(until=DatabaseNow())
    assert not re.findall(ROW, client.get("/ops/tasks/?q=is:held").text)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "state=nonsense",
            "“state:nonsense”: there is no state of this name; known: error, pending",
        ),
        ("older=nonsense", "does not name a page"),
        ("shown=x", "does not name a page"),
        ("before=nonsense", "such as 2026-01-31"),
        ("alert=x", "it is not a number, such as 7"),
        ("reference=%00", "code 0"),
        ("q=%00", "code 0"),
        ("agent=greter", "did you mean “greeter”?"),
        ("q=stp:hello", "There is no filter “stp:”; did you mean “step”?"),
        ("q=state:error&state=pending", "is there twice"),
        ("q=state:proc", "it could be “processed” or “processing”"),
        ("q=state:", "“state:” has nothing right after it; it could be “error” or “pending”"),
        ("q=state: error", "“state:” has nothing right after it"),
        ("q=workflow:%22%22", "“workflow:” has nothing right after it; it could be “"),
        ("q=attempts:", "“attempts:” has nothing right after it; a number or a comparison"),
        ("q=error:", "“error:” has nothing right after it; say how it begins"),
        ("q=contact:", "you may not search by personal data"),
        ("q=stp:", "There is no filter “stp:”; did you mean “step”?"),
        ("q=attempts:many", "such as &gt;2"),
        ("q=value:x", "such as &gt;100"),
        ("q=%22a", "quotation mark"),
        ("q=" + "a" * 501, "at most 500"),
    ],
)
def test_an_address_that_makes_no_sense_is_said_so(client, query, said):
    response = client.get(f"/ops/tasks/?{query}")
    assert response.status_code == 400
    assert said in response.text
    typed = QueryDict(query).get("q", "")
    if len(typed) > 1 and "\0" not in typed:
        assert f'value="{escape(typed)}"' in response.text  # to be mended, not typed again
    assert 'class="errors"' in response.text


@pytest.mark.parametrize("narrowing", ["", "state=pending", "workflow=greet&reference=n"])
def test_pages_follow_each_other_without_gap_or_repeat(client, narrowing):
    number = 2 * PAGE + 2
    with transaction.atomic():
        create(
            [
                NewTask(workflow="greet", reference=f"n{n}", data={"name": "A"})
                for n in range(number)
            ]
        )
    Task.objects.update(created_at=Task.objects.earliest("created_at").created_at)
    seen, query, pages = [], f"?{narrowing}", 0
    while query:
        text = client.get("/ops/tasks/" + query).text
        seen += re.findall(ROW, text)
        older = re.search(r'href="(\?[^"]*)">Older', text)
        query = older[1].replace("&amp;", "&") if older else ""
        pages += 1
    assert pages == 3
    assert sorted(seen) == sorted(f"n{n}" for n in range(number))


def task_page(client, task):
    return client.get(reverse("ops:task", args=[task.id]))


def test_a_task_tells_its_story(client):
    task = new_task("t-1")
    Policy.objects.filter(agent="greeter").update(backoff=100, backoff_cap=100)
    fail(claimed("scheduler-7"), "unknown", code="timeout", message="no answer", by="agent-9")
    response = task_page(client, task)
    page = words(response)
    assert re.search(r"“hello” retries in \d+ s , attempt 2 of 5", page)
    assert "waits for “hello”" in page
    assert re.search(r"1 unknown [-\d :.]+ s .* scheduler-7 agent-9 timeout no answer", page)
    assert "Will be tried again hello, attempt 1 supervisor-1 (epoch 3)" in page
    assert f"{task.id}:hello:do:1" in page
    assert "&quot;to&quot;: &quot;Ada&quot;" in response.text
    assert '<rect class="bar unknown"' in response.text
    assert '<rect class="bar wait"' in response.text


def test_a_finished_task_says_so(client):
    task = new_task()
    run_to_end(task)
    page = words(task_page(client, task))
    assert "Nothing more: every step is done." in page
    assert "Nothing out of the ordinary happened." in page


def test_a_failed_task_asks_for_a_decision(client):
    task = new_task()
    gave_up(task)
    assert "An operator must decide: the step “hello” failed." in words(task_page(client, task))


def test_hostile_words_stay_words(client):
    task = new_task(HOSTILE, data={"name": HOSTILE})
    (request,) = claimed()
    record([reply_to(request, "rejected", code=HOSTILE, message=HOSTILE, by=HOSTILE)])
    press(client, task.steps.get(name="hello"), reason=HOSTILE)
    (request,) = claimed()
    record([reply_to(request, "rejected", code=HOSTILE, message=HOSTILE)])
    hold(agent="greeter", actor=HOSTILE[:150], reason=HOSTILE)
    for address in ("/ops/", "/ops/tasks/", reverse("ops:task", args=[task.id])):
        text = client.get(address).text
        assert "alert(1)" in text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert HOSTILE not in text
    refused = press(client, task.steps.get(name="hello"), attempt=1)
    assert refused.status_code == 409
    assert "<script>alert" not in refused.text
