"""The action that came first, for pages that report a conflict."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self
from uuid import UUID

from django.db.models import F, Q

from ...alerting.alerts import LATE_EFFECT, late_effect_of
from ...dead_letters.actions import DeadLetterFilter
from ...models import Alert, Event, Hold
from ...models.history import EventKind

DID = {
    EventKind.RESUBMITTED: "resubmitted it",
    EventKind.BY_HAND: "marked it as done by hand",
    EventKind.REPORTED: "reported its result",
    EventKind.SETTLED: "recorded that nothing was done",
    EventKind.UNDO: "requested the undo of the task",
    EventKind.HELD: "held it",
    EventKind.RELEASED: "released it",
    EventKind.PRIORITY: "changed its priority",
    EventKind.AMENDED: "changed its input",
    EventKind.PROBE: "requested a probe",
    EventKind.CLOSED: "closed it",
    EventKind.RETRIED: "retried it",
}
DECIDED = (EventKind.RESUBMITTED, EventKind.BY_HAND, EventKind.SETTLED)
OF_LETTERS = (EventKind.RETRIED, EventKind.CLOSED)


@dataclass(frozen=True, kw_only=True)
class UserAction:
    """The action of a user, with its time and reason."""

    actor: str
    did: str
    at: datetime
    reason: str

    @classmethod
    def of_event(cls, event: Event, did: str) -> Self:
        """Return the action that an event records."""
        return cls(actor=event.actor, did=did, at=event.at, reason=event.reason)


def decision_on_step(task_id: UUID, step_id: int, attempt: int) -> UserAction | None:
    """Return the first decision on a step in error that was shown at `attempt`, if any.

    That a result was recorded decided about the step before, while it awaited that.
    """
    recorded = Q(detail__has_key="report")
    of_step = Q(step=step_id, kind__in=DECIDED, attempt__gte=attempt) & ~recorded
    undone = Q(step=None, kind=EventKind.UNDO)
    decisions = Event.objects.filter(of_step | undone, task=task_id)
    return _act(decisions.order_by(F("step").asc(nulls_last=True), "attempt", "id").first())


def report_of_step(task_id: UUID, step_id: int) -> UserAction | None:
    """Return what ended the wait of a step last: the report of its result, or the undo of its task."""
    of_step = Q(step=step_id, kind=EventKind.REPORTED)
    undone = Q(step=None, kind=EventKind.UNDO)
    act = _act(Event.objects.filter(of_step | undone, task=task_id).order_by("-id").first())
    return act and replace(act, reason="")  # of a report, that is its code or outcome


def last_undo_request(task_id: UUID) -> UserAction | None:
    """Return the last request to undo a task."""
    return _act(Event.objects.filter(task=task_id, kind=EventKind.UNDO).order_by("-id").first())


def last_requeue(filters: DeadLetterFilter) -> UserAction | None:
    """Return the last action on a dead letter."""
    acts = Event.objects.filter(kind__in=OF_LETTERS, detail__letter=f"{filters.kind} {filters.id}")
    return _act(acts.order_by("-at").first())


def last_priority_change(task_id: UUID) -> UserAction | None:
    """Return the last change of a task's priority."""
    return _act(Event.objects.filter(task=task_id, kind=EventKind.PRIORITY).order_by("-id").first())


def last_amendment(task_id: UUID) -> UserAction | None:
    """Return the last change of a task's input."""
    return _act(Event.objects.filter(task=task_id, kind=EventKind.AMENDED).order_by("-id").first())


def last_probe_request(agent: str) -> UserAction | None:
    """Return the last request for a probe of an agent."""
    asked = Event.objects.filter(task=None, kind=EventKind.PROBE, detail__agent=agent)
    return _act(asked.order_by("-id").first())


def start_of_hold(hold: Hold) -> UserAction:
    """Return the action that placed a hold."""
    return UserAction(actor=hold.actor, did="held it", at=hold.since, reason=hold.reason)


def end_of_hold(hold: Hold) -> UserAction | None:
    """Return the action that ended a hold, or None while it is in force."""
    if hold.until is None:
        return None
    return UserAction(
        actor=hold.released_by, did="released it", at=hold.until, reason=hold.released_why
    )


def acknowledgement(alert: Alert) -> UserAction | None:
    """Return the acknowledgement of an alert, if any."""
    if alert.acknowledged_at is None:
        return None
    return UserAction(
        actor=alert.acknowledged_by, did="acknowledged it", at=alert.acknowledged_at, reason=""
    )


def _act(event: Event | None) -> UserAction | None:
    return UserAction.of_event(event, DID[EventKind(event.kind)]) if event else None


def closing_of_late_effect(alert: Alert) -> UserAction | None:
    """Return the action that closed the alert of a late effect."""
    task = late_effect_of(alert.fingerprint)
    closed = Event.objects.filter(task=task, kind=EventKind.CLOSED, detail__alert=alert.id)
    return _act(closed.order_by("-id").first())


def late_effects(task: UUID) -> list[Alert]:
    """Return the open alerts about effects of a task's steps that showed late."""
    prefix = f"{LATE_EFFECT}{task}/"
    return list(Alert.objects.filter(closed_at=None, fingerprint__startswith=prefix).order_by("id"))


def alert_by_id(alert_id: int) -> Alert | None:
    """Return an alert, open or closed."""
    return Alert.objects.filter(id=alert_id).first()
