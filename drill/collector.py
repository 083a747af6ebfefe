"""A collector of traces: takes spans by OTLP over HTTP, and draws them as a tree."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PATH = "/v1/traces"


@dataclass(frozen=True, kw_only=True)
class Span:
    """A span as it arrived; ids are hexadecimal, times Unix times in seconds."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    failed: bool
    began: float
    ended: float
    attributes: dict[str, Any]
    links: list[str]  # the traces that it is linked to
    process: str


def spans_of(message: bytes) -> Iterator[Span]:
    """Yield the spans of an OTLP request."""
    for resource in ExportTraceServiceRequest.FromString(message).resource_spans:
        about = _values(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    name=span.name,
                    kind=span.kind,
                    failed=span.status.code == span.status.STATUS_CODE_ERROR,
                    began=span.start_time_unix_nano / 1e9,
                    ended=span.end_time_unix_nano / 1e9,
                    attributes=_values(span.attributes),
                    links=[link.trace_id.hex() for link in span.links],
                    process=str(about["service.instance.id"]).partition("@")[0],
                )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


class Collector:
    """A server of this process, and the spans that it has."""

    def __init__(self, port: int = 0) -> None:
        self._arrived = Condition()
        self._spans: list[Span] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(message if self.path == PATH else b"")
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def serving(self) -> Iterator["Collector"]:
        """Take spans in this context."""
        Thread(target=self._server.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    def take(self, message: bytes) -> None:
        """Keep the spans of a message."""
        with self._arrived:
            self._spans += spans_of(message)
            self._arrived.notify_all()

    def trace(self, trace: str, *, until: str = "", seconds: float = 30) -> list[Span]:
        """Return the spans of a trace by their begin, once one with the name `until` is among them."""

        def there() -> bool:
            return not until or any(
                span.trace == trace and span.name == until for span in self._spans
            )

        with self._arrived:
            arrived = self._arrived.wait_for(there, seconds)
            assert arrived, f"no span {until!r} among {sorted({span.name for span in self._spans})}"
            mine = [span for span in self._spans if span.trace == trace]
        return sorted(mine, key=lambda span: span.began)


def tree(spans: list[Span]) -> str:
    """Draw a trace: a line a span, below its parent, with when it began and what it took."""
    below = defaultdict(list)
    for span in spans:
        below[span.parent].append(span)
    first = min(span.began for span in spans)
    lines = []

    def draw(span: Span, stem: str, branch: str, more: str) -> None:
        begin, took = (span.began - first) * 1e3, (span.ended - span.began) * 1e3
        mark = "  failed" if span.failed else ""
        label = f"{stem}{branch}{span.name}"
        lines.append(f"{label:<46}{begin:>8.1f}{took:>9.1f}  {span.process}{mark}")
        children = below[span.id]
        for child in children:
            last = child is children[-1]
            draw(child, stem + more, "└─ " if last else "├─ ", "   " if last else "│  ")

    for root in below[""]:
        draw(root, "", "", "")
    return "\n".join([f"{'span':<46}{'at ms':>8}{'took ms':>9}  process", *lines])
