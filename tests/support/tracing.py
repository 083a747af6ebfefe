"""Traces exported from the process of a test."""

from contextlib import contextmanager

from drill.collector import Collector
from orchestration.tracing import export, switch


@contextmanager
def traced(monkeypatch, endpoint, **environment):
    """Export traces to an endpoint in this context; what waits is sent at its end."""
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "PROCESS": "test",
        **environment,
    }
    with monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(switch, "ON", switch.configured())
        assert switch.ON
        export.finish()  # of an earlier environment
        try:
            yield
        finally:
            switch.finish()


@contextmanager
def collected(monkeypatch, **environment):
    """Export traces to a collector in this context."""
    with (
        Collector().serving() as collector,
        traced(monkeypatch, collector.endpoint, **environment),
    ):
        yield collector
