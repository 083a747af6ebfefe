"""The spans of a task's trace, each handed over when it has ended, from what its process has in hand.

Call these only if `switch.ON`. Nothing that a partner or a person wrote goes into a span: no messages of
errors, no addresses, no payloads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from ..database import clock
from ..states import Direction, Outcome
from . import ids
from .span import Attributes, Place, Span
from .subject import Attempt, subject

GOOD = {Outcome.DONE.value, Outcome.ABSENT.value}


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """A task, as its trace names it."""

    workflow: str
    reference: str

    @property
    def root(self) -> int:
        """Return the id of the span of the whole task."""
        return ids.task_span(self.workflow, self.reference)

    def below(self, span: int | None = None) -> Place:
        """Return the place of a span right below that."""
        return Place(trace=ids.trace_of(self.reference), parent=self.root, span=span)

    @property
    def attributes(self) -> dict[str, str | int]:
        """Return what each of its spans has."""
        return {"sas.workflow": self.workflow, "sas.reference": self.reference}


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedAttempt:
    """An attempt at a step, from its claim until its outcome is recorded."""

    task: Named
    step: int
    name: str
    attempt: int
    direction: str
    claimed_at: float
    outcome: str
    attributes: Attributes  # agent, worker, key, code, tries


def clicked(task: Named, began: float, what: str, attributes: Attributes, after: str) -> None:
    """Tell that a web request posted a task; `after` is the `traceparent` that came with the request."""
    known = {**task.attributes, **attributes}
    _emit(what, task.below(), began, kind="SERVER", after=after, attributes=known)


def posted(task: Named, began: float) -> None:
    """Tell that a task was posted outside of a web request."""
    _emit("post", task.below(), began, kind="PRODUCER", attributes=task.attributes)


def taken(task: Named, posted_at: float) -> None:
    """Tell that a submission has become a task: it waited since its application posted it."""
    _emit("submission", task.below(), posted_at, attributes=task.attributes)


def ended(task: Named, id: UUID, state: str) -> None:  # noqa: A002 - what it is
    """Tell that a task has ended. Its id, a UUID of version 7, has the time when it was made."""
    place = Place(trace=ids.trace_of(task.reference), parent=None, span=task.root)
    known = {**task.attributes, "sas.task": str(id), "sas.state": state}
    _emit(task.workflow, place, (id.int >> 80) / 1000, attributes=known)


def delivered(task: Named, application: str, kind: str, written_at: float) -> None:
    """Tell that a status message has arrived."""
    known = {**task.attributes, "sas.application": application}
    _emit(f"status {kind}", task.below(), written_at, attributes=known)


def attempted(end: EndedAttempt) -> None:
    """Tell that an attempt has ended."""
    what = end.name if end.direction == Direction.DO else f"undo {end.name}"
    known = {
        **end.task.attributes,
        "sas.step": end.name,
        "sas.direction": end.direction,
        "sas.attempt": end.attempt,
        "sas.outcome": end.outcome,
        **{name: value for name, value in end.attributes.items() if value != ""},
    }
    _emit(
        f"{what}, attempt {end.attempt}",
        end.task.below(ids.attempt_span(end.step, end.attempt)),
        end.claimed_at,
        failed=end.outcome not in GOOD,
        attributes=known,
    )


def worked(attempt: Attempt, what: str, outcome: str, began: float) -> None:
    """Tell that an agent has finished its work for an attempt; without a reply there is no outcome."""
    place = Place(
        trace=ids.trace_of(attempt.reference),
        parent=ids.attempt_span(attempt.step, attempt.attempt),
        span=ids.work_span(attempt.step, attempt.attempt),
    )
    known = {"sas.outcome": outcome or "out of time"}
    _emit(what, place, began, kind="CONSUMER", failed=outcome not in GOOD, attributes=known)


@dataclass(kw_only=True, slots=True)
class Called:
    """A call to a partner under way: the headers to send along, and the answer's status once it came."""

    headers: dict[str, str] = field(default_factory=dict)
    status: int = 0


@contextmanager
def calling(method: str, action: str, host: str) -> Iterator[Called]:
    """Tell of a call to a partner, below the agent's work; the partner may continue the trace."""
    from . import export

    call, attempt = Called(), subject.get()
    if attempt is None:
        yield call
        return
    place = Place(
        trace=ids.trace_of(attempt.reference),
        parent=ids.work_span(attempt.step, attempt.attempt),
        span=(span := export.new_id()),
    )
    call.headers["traceparent"] = export.traceparent(place.trace, span)
    began = clock.now()
    try:
        yield call
    finally:
        known: dict[str, str | int] = {"http.request.method": method, "server.address": host}
        if call.status:
            known["http.response.status_code"] = call.status
        failed = not 0 < call.status < 400
        _emit(f"{method} {action}", place, began, kind="CLIENT", failed=failed, attributes=known)


def _emit(
    name: str,
    place: Place,
    began: float,
    *,
    attributes: Attributes,
    kind: str = "INTERNAL",
    failed: bool = False,
    after: str = "",
) -> None:
    """Hand over a span that ends now. OpenTelemetry is loaded here, and not without need."""
    from . import export

    export.emit(
        Span(
            name=name,
            place=place,
            began=began,
            ended=clock.now(),
            attributes=attributes,
            kind=kind,
            failed=failed,
            after=after,
        )
    )
