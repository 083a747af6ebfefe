"""Spans on their way to a collector, and processes that end or have none."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from uuid import uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured

from orchestration.agents.actions import action
from orchestration.agents.base import Agent
from orchestration.agents.performers import Performers
from orchestration.messaging.messages import Reply
from orchestration.tracing import export, ids, spans, switch
from sasweb.stack.folders import PROJECT
from tests.support.messages import request
from tests.support.tracing import collected, traced

TASK = spans.Named(workflow="greet", reference="42")
MANY = 3_000  # more than wait for a collector


@pytest.fixture
def hanging():
    """Return the address of a collector that accepts connections and answers nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_collector_that_hangs_delays_neither_work_nor_the_end_of_a_process(monkeypatch, hanging):
    with traced(monkeypatch, hanging, OTEL_BSP_MAX_EXPORT_BATCH_SIZE="100"):
        switch.begin()
        began = time.perf_counter()
        for _ in range(MANY):
            spans.posted(TASK, 1.0)
        assert time.perf_counter() - began < 10  # as long as the exporter waits for one answer
        began = time.perf_counter()
        export.finish(seconds=0.2)
        assert time.perf_counter() - began < 5


def test_span_is_sent_when_its_process_ends(monkeypatch):
    with collected(monkeypatch, OTEL_BSP_SCHEDULE_DELAY="3600000") as collector:
        spans.posted(TASK, 1.0)
        switch.finish()
        (span,) = collector.trace(ids.trace_id("42"), until="post")
    assert (span.process, span.began) == ("test", 1.0)


def test_process_that_is_forked_sends_its_own_spans_and_no_others(monkeypatch):
    with collected(monkeypatch, OTEL_BSP_SCHEDULE_DELAY="3600000") as collector:
        spans.posted(TASK, 1.0)
        child = os.fork()
        if not child:
            try:
                spans.taken(TASK, 2.0)
                switch.finish()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert [span.name for span in collector.trace(ids.trace_id("42"))] == ["submission"]
        switch.finish()
        names = [span.name for span in collector.trace(ids.trace_id("42"), until="post")]
    assert names == ["post", "submission"]


class Clerk(Agent):
    name = "clerk"

    @action
    async def write(self, call):
        return {"by": os.getpid()}


def test_work_in_a_performing_process_is_in_the_trace(monkeypatch):
    async def perform():
        performers = Performers(Clerk("clerk-1"))
        asked = request(action="write", reference="42", step=7, attempt=2)
        reply = Reply.parse(await performers.answer(asked))
        assert reply.result["by"] != os.getpid()
        (span,) = await asyncio.to_thread(collector.trace, ids.trace_id("42"), until="clerk.write")
        await performers.close()
        return span

    with collected(monkeypatch) as collector:
        span = asyncio.run(perform())
    assert span.parent == f"{ids.attempt_span(7, 2):016x}"


@pytest.mark.parametrize("sampler", ["traceidratio", "parentbased_traceidratio"])
def test_ratio_keeps_whole_traces_by_the_reference(monkeypatch, sampler):
    """By any kind of reference: two of the last 64 bits of a UUID, which decide, are fixed."""
    references = [str(uuid4()) for _ in range(2_000)]
    environment = {"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": "0.25"}
    with collected(monkeypatch, **environment) as collector:
        sampled = [ref for ref in references if export.is_sampled(ids.trace_of(ref))]
        assert 0.2 < len(sampled) / len(references) < 0.3
        lost = next(ref for ref in references if ref not in sampled)
        for reference in (lost, sampled[0]):
            task = spans.Named(workflow="greet", reference=reference)
            spans.taken(task, 1.0)
            spans.posted(task, 2.0)
        switch.finish()
        assert len(collector.trace(ids.trace_id(sampled[0]), until="post")) == 2
        assert collector.trace(ids.trace_id(lost)) == []
        flags = [export.traceparent(ids.trace_of(ref), 1)[-3:] for ref in (lost, sampled[0])]
    assert flags == ["-00", "-01"]


@pytest.mark.parametrize(
    ("environment", "on"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://there:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://there:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://there"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://there"}, False),
    ],
)
def test_variables_turn_traces_on(monkeypatch, environment, on):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert switch.configured() is on


@pytest.mark.parametrize(
    "environment",
    [
        {"OTEL_TRACES_EXPORTER": "zipkin"},
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_what_cannot_be_done_stops_the_start(monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match="may be"):
        switch.configured()


def test_no_span_is_made_ready_without_a_collector():
    """The client of Redis loads the metrics of OpenTelemetry wherever that is installed: no more is."""
    code = (
        "import sys, django; django.setup();"
        "from orchestration.workers import worker; import sasweb.urls, sasweb.wsgi;"
        "unwanted = ('opentelemetry.sdk.trace', 'opentelemetry.exporter', 'google.protobuf');"
        "sys.exit(any(name.startswith(unwanted) for name in sys.modules))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL")}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PROJECT, env=environment)
