"""A span that has ended, as plain data: known without OpenTelemetry."""

from collections.abc import Mapping
from dataclasses import dataclass

Attributes = Mapping[str, str | int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a span stands: its trace, its parent (None: it is the root), its own id (None: any)."""

    trace: int
    parent: int | None
    span: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A part of a trace; times are Unix times in seconds.

    `kind` is one of OpenTelemetry's. `after` is the `traceparent` of another trace, to which it gets a link.
    """

    name: str
    place: Place
    began: float
    ended: float
    attributes: Attributes
    kind: str
    failed: bool
    after: str
