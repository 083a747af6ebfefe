"""The page of one task."""

import re
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from orchestration import registry
from orchestration.api import field
from orchestration.messaging.messages import MAX_ANSWER, Evidence
from orchestration.models import AttemptEvidence, Policy
from orchestration.models.history import EventKind
from orchestration.people.redaction import HIDDEN
from orchestration.tracing import ids
from orchestration.transitions.holds import hold
from orchestration.transitions.replies import record
from tests.support.engine import claimed, new_task, reply_to, run_to_end
from tests.support.operators import browser, fail, gave_up, person, press
from tests.support.page import page, query_count

EVIDENCE = Evidence(
    traceback="Traceback (most recent call last):\nKeyError: 'Ada-of-Bath'",
    answer='{"error":{"for":"Ada-of-Bath"}}',
    status=500,
)
HOSTILE = "</td><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"

pytestmark = pytest.mark.django_db


def shown(client, task):
    return page(client.get(reverse("ops:task", args=[task.id])))


def test_task_page_shows_its_attempts_and_events(client):
    task = new_task("t-1")
    Policy.objects.filter(agent="greeter").update(backoff=100, backoff_cap=100)
    fail(claimed("scheduler-7"), "unknown", code="timeout", message="no answer", by="agent-9")
    live = shown(client, task).only("#live")
    assert re.match(
        r".*“hello”: next attempt in [\d mins]+ , attempt 2 of 5", live.only(".ops-now").text
    )
    hello, again = live.all(".ops-step")
    assert "waiting for “hello”" in again.all("p")[0].text
    (number, outcome, sent, _, _, tries, error), processes = hello.rows()
    assert (number, outcome, tries) == ("1", "unknown", "1")
    assert re.fullmatch(r"[-\d :.]+", sent)
    assert error == "timeout no answer"
    assert processes == ["1", "scheduler-7", "agent-9"]
    assert f"{task.id}:hello:do:1" in hello.texts("code")
    assert '"to": "Ada"' in hello.only("pre").text
    ((_, event, step, actor, _),) = live.section("h-events").rows()
    assert (event, step) == (EventKind.RETRY.label, "hello, attempt 1")
    assert actor == "supervisor-1 (epoch 3)"
    assert live.only("rect.bar.unknown")
    assert live.only("rect.bar.wait")


def failed_with(evidence, data=None):
    """Record a failure of the first step of a new task with its evidence; return the task."""
    task = new_task("t-1", data=data)
    (request,) = claimed()
    record([reply_to(request, "unknown", evidence=evidence)])
    return task


def seer():
    """Return the client of a user who may read personal data."""
    return browser(person("bea", "operate", "see_personal"))


def test_failed_attempt_shows_its_traceback_and_the_answer():
    task = failed_with(EVIDENCE)
    step = task.steps.get(name="hello")
    live = shown(seer(), task).only("#live")
    shows = live.only('[data-evidence="1"]')
    assert shows.only("[data-traceback]").only("pre").text.endswith("KeyError: 'Ada-of-Bath'")
    answer = shows.only("[data-answer]")
    assert answer.only("pre").text == '{ "error": { "for": "Ada-of-Bath" } }'
    assert "HTTP 500" in answer.text
    assert [button["aria-label"] for button in shows.all("[data-copy]")] == [
        "Copy the traceback",
        "Copy the answer",
    ]
    assert live.only(f"#attempt-{step.id}-1")["data-attempt"] == "1"


def test_personal_words_of_evidence_are_hidden(client, monkeypatch):
    declared = replace(registry.workflows["greet"], personal=[field("name")])
    monkeypatch.setitem(registry.workflows, "greet", declared)
    address = reverse("ops:task", args=[failed_with(EVIDENCE, data={"name": "Ada-of-Bath"}).id])
    redacted = client.get(address).text
    assert "KeyError" in redacted
    assert "Ada-of-Bath" not in redacted
    assert "Ada-of-Bath" in seer().get(address).text


def test_answer_that_was_cut_is_hidden_whole(client):
    """Its end may be a part of a personal word."""
    cut = Evidence(answer="x" * (MAX_ANSWER - 3) + "Ada", status=500, cut=True)
    task = failed_with(cut)
    assert shown(client, task).only("[data-answer]").only("pre").text == HIDDEN
    assert shown(seer(), task).only("[data-answer]").only("pre").text.endswith("xAda")


def test_success_writes_and_reads_no_evidence(client):
    task = new_task()
    with CaptureQueriesContext(connection) as queries:
        run_to_end(task)
        shown(client, task)
    assert queries
    assert [query for query in queries if "attemptevidence" in query["sql"]] == []
    assert not AttemptEvidence.objects.exists()


def test_evidence_costs_the_page_one_query_however_much_there_is():
    task = failed_with(EVIDENCE)
    step, user, address = task.steps.get(name="hello"), seer(), reverse("ops:task", args=[task.id])
    before = query_count(user, address)
    AttemptEvidence.objects.bulk_create(
        AttemptEvidence(step=step, number=number, answer="no") for number in range(2, 60)
    )
    assert query_count(user, address) == before


def test_finished_task_is_marked(client):
    task = new_task()
    run_to_end(task)
    live = shown(client, task).only("#live")
    assert live.only(".ops-now").texts(".badge") == ["processed"]
    assert live.only(".ops-now").only("strong").text == "Ended: all steps are done."
    assert live.section("h-events").rows() == []


def test_failed_task_asks_for_a_decision(client):
    task = new_task()
    step = gave_up(task)
    live = shown(client, task).only("#live")
    assert live.only(".ops-now").only("strong").text == "“hello” failed: waiting for an operator."
    assert live.only(f'form[action="{reverse("ops:resubmit", args=[step.id])}"]')


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
    fact = shown(client, task).only('[data-fact="trace"]')
    assert (fact.only("code").text, fact.all("a")) == (trace, [])
    assert fact.only("button")["data-copy"] == trace
    settings.TRACE_URL = "https://traces.example/trace/{trace_id}?limit=1"
    (link,) = shown(client, task).only('[data-fact="trace"]').all("a")
    assert link.attributes["href"] == f"https://traces.example/trace/{trace}?limit=1"
