"""Whether traces are exported, by the variables of OpenTelemetry; they are read once."""

import os

from django.core.exceptions import ImproperlyConfigured

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


def configured() -> bool:
    """Return whether the environment asks for traces; raise ImproperlyConfigured if it cannot be met."""
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if exporter not in {"", "otlp", "none"}:
        raise ImproperlyConfigured(
            f"OTEL_TRACES_EXPORTER={exporter!r} is not supported; it may be 'otlp' or 'none'."
        )
    off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if off or exporter == "none" or not (exporter or any(map(os.environ.get, ENDPOINTS))):
        return False
    for name in PROTOCOLS:
        if os.environ.get(name, "http/protobuf") != "http/protobuf":
            raise ImproperlyConfigured(
                f"{name}={os.environ[name]!r} is not supported; it may be 'http/protobuf'."
            )
    return True


ON = configured()


def begin() -> None:
    """Make ready what exports spans: this process serves, and the first span should not wait for that."""
    if ON:
        from . import export

        export.begin()


def finish() -> None:
    """Send the spans that wait, within a bounded time: this process ends."""
    if ON:
        from . import export

        export.finish()
