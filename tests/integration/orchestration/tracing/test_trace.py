"""The trace of a task, as a collector gets it from the processes that the task goes through."""

import re
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from django.db import transaction

from drill.collector import tree
from orchestration import conf, registry
from orchestration.models import Step, Task
from orchestration.models.fields import DatabaseNow
from orchestration.tracing import ids
from orchestration.transitions.replies import record
from orchestration.workers import jobs
from sasweb import log
from tests.support.engine import (
    claimed,
    new_task,
    postpone_retries,
    reply_to,
    request_undo,
    run_to_end,
    staff,
    sweep,
)
from tests.support.operators import LEADER
from tests.support.sandbox import process, send
from tests.support.shop import AGENTS, DETAILS, buy, products
from tests.support.tracing import collected

CLICK = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def noting(port):
    """Pass requests on to a server; yield where, and the `traceparent` of each."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append(self.headers["traceparent"])
            server = HTTPConnection("127.0.0.1", port)
            server.request(self.command, self.path, body, dict(self.headers))
            answer = server.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            server.close()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()


@pytest.fixture
def partners(monkeypatch, tmp_path):
    with process(tmp_path) as (_, port), noting(port) as (address, seen):
        send(port, "PUT", "/inventory/stock", body={"sku-0": 1})
        once = {"partner": "payment", "action": "authorize", "fault": "status", "times": 1}
        assert send(port, "PUT", "/faults", body={"faults": [once]})[0] == 200
        for agent in AGENTS:
            monkeypatch.setattr(registry.agents[agent], "base_url", address)
        monkeypatch.setattr(conf, "INBOX_IDLE_S", 0.01)  # seconds until a job ends
        yield seen
        jobs.close_runtimes()


def attempts_in(spans):
    """Return the spans of attempts by their names."""
    return {span.name: span for span in spans if "sas.attempt" in span.attributes}


def test_trace_of_an_order_is_one_tree_from_the_click_to_the_partners_call(
    client, partners, monkeypatch, caplog
):
    staff()
    products()
    client.defaults["HTTP_TRACEPARENT"] = CLICK
    with collected(monkeypatch) as collector:
        order = str(buy(client, sku_0=1))
        jobs.take_submissions()
        for _ in range(6):  # turns
            jobs.schedule()
            for agent in AGENTS:
                jobs.call_agent(agent)
        jobs.deliver_status("shop")
        spans = collector.trace(ids.trace_id(order), until="status completed")
    task = Task.objects.get(reference=order)
    assert task.state == "processed"
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans)
    (root,) = [span for span in spans if not span.parent]
    assert root.attributes["sas.task"] == str(task.id)
    assert root.attributes["sas.state"] == "processed"
    assert root.ended - root.began == pytest.approx(
        (task.ended_at - task.created_at).total_seconds(), abs=0.5
    )
    # each span but the root is below another of the trace, and begins no earlier than a parent does
    # that caused it: the click and the submission come before the task
    assert {span.parent for span in spans} <= {"", *by_id}
    for span in spans:
        if span.parent not in {"", root.id}:
            assert span.began >= by_id[span.parent].began
            assert span.ended <= by_id[span.parent].ended
    (click,) = [span for span in spans if span.name == "POST /checkout/"]
    assert click.parent == root.id
    assert click.links == [CLICK.split("-")[1]]
    (taken,) = [span for span in spans if span.name == "submission"]
    assert taken.parent == root.id
    steps = Step.objects.filter(task=task).exclude(process_state="skipped")
    attempts = attempts_in(spans)
    assert set(attempts) == {f"{step.name}, attempt {step.attempt}" for step in steps}
    for span in attempts.values():
        assert span.parent == root.id
        assert span.attributes["sas.outcome"] == "done"
        assert span.attributes["sas.key"].startswith(f"{task.id}:{span.attributes['sas.step']}:do:")
        assert span.attributes["sas.worker"].startswith(span.attributes["sas.agent"] + "@")
        (work,) = [child for child in spans if child.parent == span.id]
        assert work.name.startswith(span.attributes["sas.agent"] + ".")
        calls = [child for child in spans if child.parent == work.id]
        failed = [call.attributes["http.response.status_code"] for call in calls if call.failed]
        authorizes = span.name.startswith("authorize_payment")
        assert (len(calls), len(failed)) == ((2, 1) if authorizes else (1, 0))
    # each partner got the id of the span of its call
    calls = {span.id for span in spans if span.kind == 3}
    got = [re.fullmatch(r"00-(\w{32})-(\w{16})-01", header) for header in partners]
    mine = [hit[2] for hit in got if hit[1] == ids.trace_id(order)]  # the letter has its own trace
    assert sorted(mine) == sorted(calls)
    # nothing in it, or in the log, is what the customer wrote
    text = repr(spans) + "".join(map(log.formatter("json").format, caplog.records))
    assert [value for value in DETAILS.values() if value in text and len(value) > 4] == []
    assert "├─ submission" in tree(spans)


def test_undo_expiry_and_a_second_attempt_are_in_the_trace(monkeypatch):
    staff()
    postpone_retries()
    with collected(monkeypatch) as collector:
        task = new_task()
        (request,) = claimed()
        step = Step.objects.filter(id=request.step)
        step.update(complete_by=DatabaseNow() - timedelta(seconds=1))
        assert str(sweep(LEADER)) == "1 retried"
        step.update(run_after=DatabaseNow())
        sweep(LEADER)
        (again,) = claimed()
        record([reply_to(again)])
        request_undo("greet", task.reference, actor="ada", reason="for a test")
        run_to_end(task)
        spans = collector.trace(ids.trace_id(task.reference), until="greet")
    assert task.state == "undone"
    attempts = attempts_in(spans)
    outcomes = {name: span.attributes["sas.outcome"] for name, span in attempts.items()}
    assert outcomes == {
        "hello, attempt 1": "expired",
        "hello, attempt 2": "done",
        "undo hello, attempt 1": "done",
    }
    assert Counter(span.failed for span in attempts.values()) == {True: 1, False: 2}
    assert attempts["undo hello, attempt 1"].attributes["sas.direction"] == "undo"
    (root,) = [span for span in spans if not span.parent]
    assert root.attributes["sas.state"] == "undone"


def test_attempt_that_is_rolled_back_is_not_in_the_trace(monkeypatch):
    with collected(monkeypatch) as collector:
        task = new_task()
        (request,) = claimed()
        with transaction.atomic():
            record([reply_to(request, "unknown")])
            transaction.set_rollback(True)
        record([reply_to(request)])
        spans = collector.trace(ids.trace_id(task.reference), until="hello, attempt 1")
    assert [span.attributes["sas.outcome"] for span in spans] == ["done"]
