"""The page of one task."""

import re

import pytest
from django.urls import reverse

from orchestration.models import Policy
from orchestration.models.history import EventKind
from orchestration.tracing import ids
from orchestration.transitions.holds import hold
from orchestration.transitions.replies import record
from tests.support.engine import claimed, new_task, reply_to, run_to_end
from tests.support.operators import fail, gave_up, press
from tests.support.page import page

HOSTILE = "</td><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"

pytestmark = pytest.mark.django_db


def shown(client, task):
    return page(client.get(reverse("ops:task", args=[task.id])))


def test_task_page_shows_its_attempts_and_events(client):
    task = new_task("t-1")
    Policy.objects.filter(agent="greeter").update(backoff=100, backoff_cap=100)
    fail(claimed("scheduler-7"), "unknown", code="timeout", message="no answer", by="agent-9")
    live = shown(client, task).one("#live")
    assert re.match(
        r".*“hello”: next attempt in [\d mins]+ , attempt 2 of 5", live.one(".ops-now").text
    )
    hello, again = live.all(".ops-step")
    assert "waiting for “hello”" in again.all("p")[0].text
    ((number, outcome, sent, _, _, tries, scheduler, agent, error),) = hello.rows()
    assert (number, outcome, tries) == ("1", "unknown", "1")
    assert re.fullmatch(r"[-\d :.]+", sent)
    assert (scheduler, agent, error) == ("scheduler-7", "agent-9", "timeout no answer")
    assert f"{task.id}:hello:do:1" in hello.texts("code")
    assert '"to": "Ada"' in hello.one("pre").text
    ((_, event, step, actor, _),) = live.section("h-events").rows()
    assert (event, step) == (EventKind.RETRY.label, "hello, attempt 1")
    assert actor == "supervisor-1 (epoch 3)"
    assert live.one("rect.bar.unknown")
    assert live.one("rect.bar.wait")


def test_finished_task_is_marked(client):
    task = new_task()
    run_to_end(task)
    live = shown(client, task).one("#live")
    assert live.one(".ops-now").texts(".badge") == ["processed"]
    assert live.one(".ops-now").one("strong").text == "Ended: all steps are done."
    assert live.section("h-events").rows() == []


def test_failed_task_asks_for_a_decision(client):
    task = new_task()
    step = gave_up(task)
    live = shown(client, task).one("#live")
    assert live.one(".ops-now").one("strong").text == "“hello” failed: waiting for an operator."
    assert live.one(f'form[action="{reverse("ops:resubmit", args=[step.id])}"]')


def test_hostile_text_is_escaped(client):
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


def test_task_page_names_its_trace_and_links_to_it(client, settings):
    task = new_task("t-1")
    trace = ids.trace_id("t-1")
    fact = shown(client, task).one('[data-fact="trace"]')
    assert (fact.text, fact.all("a")) == (trace, [])
    settings.TRACE_URL = "https://traces.example/trace/{trace_id}?limit=1"
    (link,) = shown(client, task).one('[data-fact="trace"]').all("a")
    assert link.attributes["href"] == f"https://traces.example/trace/{trace}?limit=1"
