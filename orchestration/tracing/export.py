"""Spans by OpenTelemetry's SDK, sent from a thread; imported only where traces are exported.

A collector that is slow or away costs spans, never work: beyond OTEL_BSP_MAX_QUEUE_SIZE the oldest go.
"""

import atexit
import logging
import os
import socket
from contextvars import ContextVar
from threading import Lock, Thread

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from .span import Place, Span

logger = logging.getLogger(__name__)
NAME = "orchestration"


class _Ids(RandomIdGenerator):
    """Gives the next span the ids of its place."""

    def generate_trace_id(self) -> int:
        return _place.get().trace

    def generate_span_id(self) -> int:
        return _place.get().span or new_id()


_place: ContextVar[Place] = ContextVar("place")
_random = RandomIdGenerator()
_provider: TracerProvider | None = None
_lock = Lock()


def new_id() -> int:
    """Return an id for a span that no other process has to know."""
    return _random.generate_span_id()


def begin() -> TracerProvider:
    """Return this process's provider; the first call makes it: its thread outlives no fork."""
    global _provider  # noqa: PLW0603 - one per process
    with _lock:
        if _provider is None:
            _provider = TracerProvider(
                resource=_resource(), id_generator=_Ids(), shutdown_on_exit=False
            )
            try:
                _provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
            except Exception:  # work goes on without traces
                logger.exception("no trace is exported: see the variables OTEL_…")
            atexit.register(finish)
        return _provider


def _resource() -> Resource:
    """Return what the environment says of this process, with a name for it."""
    process = os.environ.get("PROCESS", "manage")
    instance = f"{process}@{socket.gethostname()}:{os.getpid()}"
    known = Resource.create({"service.instance.id": instance})
    named = not str(known.attributes["service.name"]).startswith("unknown_service")
    return known if named else known.merge(Resource({"service.name": NAME}))


def _forget() -> None:
    """Leave what the parent process has begun to the parent."""
    global _provider, _lock
    _provider, _lock = None, Lock()


os.register_at_fork(after_in_child=_forget)


def finish(seconds: float = 2.0) -> None:
    """Send what waits, for so long at most: the process ends."""
    global _provider
    provider, _provider = _provider, None
    if provider is not None:
        last = Thread(target=provider.shutdown, name="last spans", daemon=True)
        last.start()
        last.join(seconds)


def is_sampled(trace_id: int) -> bool:
    """Return whether a trace is kept, by OTEL_TRACES_SAMPLER: for one trace the same in all processes."""
    decided = begin().sampler.should_sample(None, trace_id, NAME)
    return decided.decision != Decision.DROP


def emit(span: Span) -> None:
    """Hand over a span, if its trace is kept."""
    place = span.place
    if not is_sampled(place.trace):
        return
    context = Context()
    if place.parent is not None:
        parent = _known(place.trace, place.parent)
        context = trace.set_span_in_context(NonRecordingSpan(parent), context)
    tracer = begin().get_tracer(NAME)
    links = _links(span.after) if span.after else ()
    kind, began = SpanKind[span.kind], int(span.began * 1e9)
    token = _place.set(place)
    try:
        live = tracer.start_span(span.name, context, kind, span.attributes, links, began)
    finally:
        _place.reset(token)
    if span.failed:
        live.set_status(StatusCode.ERROR)
    live.end(int(max(span.began, span.ended) * 1e9))


def _known(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(
        trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )


def _links(traceparent: str) -> list[trace.Link]:
    parent = TraceContextTextMapPropagator().extract({"traceparent": traceparent}, Context())
    context = trace.get_current_span(parent).get_span_context()
    return [trace.Link(context)] if context.is_valid else []


def traceparent(trace_id: int, span_id: int) -> str:
    """Return the header by which a service continues a trace (W3C Trace Context)."""
    flags = TraceFlags.SAMPLED if is_sampled(trace_id) else TraceFlags.DEFAULT
    return f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}"
