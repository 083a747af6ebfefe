"""Who did what: for whoever comes second, and is told so."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F, Q

from ..alerts import LATE_EFFECT, late_effect_of
from ..models import Alert, Event, Hold
from ..models.history import EventKind

DID = {
    EventKind.RESUBMITTED: "resubmitted it",
    EventKind.BY_HAND: "said that it was done by hand",
    EventKind.SETTLED: "said that nothing was done",
    EventKind.UNDO: "asked for the task to be undone",
    EventKind.HELD: "held it",
    EventKind.RELEASED: "released it",
    EventKind.PRIORITY: "changed its priority",
    EventKind.PROBE: "asked for a probe at once",
    EventKind.CLOSED: "closed it",
}
DECIDED = (EventKind.RESUBMITTED, EventKind.BY_HAND, EventKind.SETTLED)


@dataclass(frozen=True, kw_only=True)
class Act:
    """What somebody did, when and why."""

    actor: str
    did: str
    at: datetime
    reason: str


def who_decided(task_id: UUID, step_id: int, attempt: int) -> Act | None:
    """Return who decided about a step in error that was seen after `attempt`, if somebody did."""
    of_step = Q(step=step_id, kind__in=DECIDED, attempt__gte=attempt)
    undone = Q(step=None, kind=EventKind.UNDO)
    found = Event.objects.filter(of_step | undone, task=task_id)
    return _act(found.order_by(F("step").asc(nulls_last=True), "attempt", "id").first())


def who_undid(task_id: UUID) -> Act | None:
    """Return who had a task undone."""
    return _act(Event.objects.filter(task=task_id, kind=EventKind.UNDO).order_by("-id").first())


def who_prioritized(task_id: UUID) -> Act | None:
    """Return who changed a task's priority last."""
    return _act(Event.objects.filter(task=task_id, kind=EventKind.PRIORITY).order_by("-id").first())


def who_probed(agent: str) -> Act | None:
    """Return who last asked for a probe of an agent, among the newest events without a task."""
    asked = Event.objects.filter(task=None, kind=EventKind.PROBE, detail__agent=agent)
    return _act(asked.order_by("-id").first())


def who_held(hold: Hold) -> Act:
    """Return who holds, as an act."""
    return Act(actor=hold.actor, did="held it", at=hold.since, reason=hold.reason)


def who_released(hold: Hold) -> Act | None:
    """Return who ended a hold, or None while it is in force."""
    if hold.until is None:
        return None
    return Act(actor=hold.released_by, did="released it", at=hold.until, reason=hold.released_why)


def who_acknowledged(alert: Alert) -> Act | None:
    """Return who takes care of an alert."""
    if alert.acknowledged_at is None:
        return None
    return Act(
        actor=alert.acknowledged_by, did="acknowledged it", at=alert.acknowledged_at, reason=""
    )


def _act(event: Event | None) -> Act | None:
    if event is None:
        return None
    return Act(actor=event.actor, did=DID[EventKind(event.kind)], at=event.at, reason=event.reason)


def who_closed(alert: Alert) -> Act | None:
    """Return who closed the alert of a late effect."""
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
