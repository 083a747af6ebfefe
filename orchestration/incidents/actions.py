"""Acknowledge, assign, mute and resolve incidents, each guarded by the last event seen.

A caller names the last event of the incident that the person saw. If another person has acted since,
nothing is done, and `Conflict` carries that event.
"""

from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction

from ..alerting import alerts
from ..models import Alert, Event, Incident, Step
from ..models.fields import DatabaseNow
from ..models.incident import IncidentEventKind, IncidentState
from ..states import StepState
from .aggregation import resolve_now, unmuted
from .events import incident_event

# Events after which another action is still right.
NOT_DECISIVE = (IncidentEventKind.NOTE, IncidentEventKind.RETRIED)


class Conflict(Exception):
    """The action was refused; `event` is the earlier action, if that is the reason."""

    def __init__(self, why: str, event: Event | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.event = event


@transaction.atomic
def acknowledge(incident_id: int, *, seen: int, by: str) -> None:
    """Record that a person works on an incident."""
    incident = _lock(incident_id, seen)
    if incident.acknowledged_at is not None:
        raise Conflict(f"{incident.acknowledged_by} has already acknowledged it")
    alerts.acknowledge(incident.alerts.filter(closed_at=None).values_list("id", flat=True), by=by)
    _acknowledged(incident, by)


@transaction.atomic
def acknowledge_alerts(chosen: Iterable[int], *, by: str) -> int:
    """Record that a person works on open alerts, and so on their incidents; return how many were new."""
    known = list(chosen)
    causes = Alert.objects.filter(id__in=known, closed_at=None).values("incident")
    new = Incident.objects.filter(id__in=causes, acknowledged_at=None)
    locked = new.select_for_update(no_key=True)  # before their alerts, in one order
    incidents = list(locked.exclude(state=IncidentState.RESOLVED).order_by("id"))
    done = alerts.acknowledge(known, by=by)
    if done:
        for incident in incidents:
            _acknowledged(incident, by)
    return done


def _acknowledged(incident: Incident, by: str) -> None:
    incident.acknowledged_at, incident.acknowledged_by = DatabaseNow(), by
    incident.returned_at = None
    if incident.state in {IncidentState.NEW, IncidentState.RETURNED}:
        incident.state = IncidentState.ACKNOWLEDGED
    _save(incident, "acknowledged_at", "acknowledged_by", "returned_at", "state")
    _record_event(incident, IncidentEventKind.ACKNOWLEDGED, by)


@transaction.atomic
def assign(incident_id: int, *, seen: int, by: str, to: User | None) -> None:
    """Set or clear the assignee of an incident."""
    incident = _lock(incident_id, seen)
    if incident.assignee_id == (to.pk if to else None):
        raise Conflict("It is already assigned to this user" if to else "It has no assignee")
    incident.assignee = to
    _save(incident, "assignee")
    _record_event(
        incident, IncidentEventKind.ASSIGNED, by, f"to {to.get_username()}" if to else "no assignee"
    )


@transaction.atomic
def note(incident_id: int, *, by: str, text: str) -> None:
    """Add a note to an incident."""
    _record_event(Incident.objects.get(id=incident_id), IncidentEventKind.NOTE, by, text)


@transaction.atomic
def mute(incident_id: int, *, seen: int, by: str, reason: str, hours: int | None = None) -> None:
    """Send no notifications of an incident, for some hours or until it is unmuted; still count it."""
    incident = _lock(incident_id, seen)
    if incident.state == IncidentState.MUTED:
        raise Conflict(f"{incident.muted_by} has already muted it")
    incident.state = IncidentState.MUTED
    incident.muted_at, incident.muted_by = DatabaseNow(), by
    incident.muted_until = DatabaseNow() + timedelta(hours=hours) if hours else None
    _save(incident, "state", "muted_at", "muted_by", "muted_until")
    length = f"for {hours} h" if hours else "until it is unmuted"
    _record_event(incident, IncidentEventKind.MUTED, by, f"{length}: {reason}")


@transaction.atomic
def unmute(incident_id: int, *, seen: int, by: str) -> None:
    """Send notifications of an incident again, and at once those of its open alerts."""
    incident = _lock(incident_id, seen)
    if incident.state != IncidentState.MUTED:
        raise Conflict("It is no longer muted")
    unmuted(incident)
    if incident.returned_at is not None:
        incident.state = IncidentState.RETURNED
    elif incident.acknowledged_at is not None:
        incident.state = IncidentState.ACKNOWLEDGED
    _save(incident, "state", "muted_at", "muted_by", "muted_until")
    alerts.notify(incident.id)
    _record_event(incident, IncidentEventKind.UNMUTED, by)


@transaction.atomic
def resolve(incident_id: int, *, seen: int, by: str) -> None:
    """Resolve an incident by which no step is in error; the housekeeper would do so later."""
    incident = _lock(incident_id, seen)
    if incident.state == IncidentState.RESOLVED:
        raise Conflict("It is already resolved")
    if Step.objects.filter(incident=incident, process_state=StepState.ERROR).exists():
        raise Conflict("Tasks are in error by it: resubmit or undo them first")
    resolve_now(incident, DatabaseNow())
    unmuted(incident)
    incident.state = IncidentState.RESOLVED
    _save(
        incident, "resolved_at", "had_open_tasks", "returned_at", "acknowledged_at", "acknowledged_by",
        "state", "muted_at", "muted_by", "muted_until",
    )  # fmt: skip
    _record_event(incident, IncidentEventKind.RESOLVED, by)


def _lock(incident_id: int, seen: int) -> Incident:
    incident = Incident.objects.select_for_update(no_key=True).get(id=incident_id)
    decisive = Event.objects.filter(incident=incident, id__gt=seen)
    if first := decisive.exclude(detail__what__in=NOT_DECISIVE).order_by("id").first():
        raise Conflict("Another person was first", first)
    return incident


def _save(incident: Incident, *names: str) -> None:
    incident.save(update_fields=names)


def _record_event(incident: Incident, kind: IncidentEventKind, by: str, text: str = "") -> None:
    incident_event(incident, kind, by, text, person=True).save()
