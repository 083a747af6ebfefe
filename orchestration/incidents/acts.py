"""What people do about incidents: each act once, by name, on what they saw.

Whoever acts names the last event of the incident that they saw. If somebody did something since,
the act is not done, and the answer is who did what, and when.
"""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction

from .. import alerts
from ..models import Event, Incident, Step
from ..models.fields import DatabaseNow
from ..models.incident import Deed, IncidentState
from ..states import StepState
from .folding import resolve_now, unmuted
from .history import told

# What does not change what anybody else would do.
BESIDE = (Deed.NOTE, Deed.RETRIED)


class Conflict(Exception):
    """The act was not done; `event` is what came first, if that is the reason."""

    def __init__(self, why: str, event: Event | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.event = event


@transaction.atomic
def acknowledge(incident_id: int, *, seen: int, by: str) -> None:
    """Record that somebody takes care of an incident."""
    incident = _lock(incident_id, seen)
    if incident.acknowledged_at is not None:
        raise Conflict(f"{incident.acknowledged_by} takes care of it already")
    incident.acknowledged_at, incident.acknowledged_by = DatabaseNow(), by
    incident.returned_at = None
    if incident.state in {IncidentState.NEW, IncidentState.RETURNED}:
        incident.state = IncidentState.ACKNOWLEDGED
    _save(incident, "acknowledged_at", "acknowledged_by", "returned_at", "state")
    alerts.acknowledge(incident.alerts.filter(closed_at=None).values_list("id", flat=True), by=by)
    _happened(incident, Deed.ACKNOWLEDGED, by)


@transaction.atomic
def assign(incident_id: int, *, seen: int, by: str, to: User | None) -> None:
    """Have somebody see to an incident, or nobody any more."""
    incident = _lock(incident_id, seen)
    if incident.assignee_id == (to.pk if to else None):
        raise Conflict("It is theirs already" if to else "It is assigned to nobody")
    incident.assignee = to
    _save(incident, "assignee")
    _happened(incident, Deed.ASSIGNED, by, f"to {to.get_username()}" if to else "to nobody")


@transaction.atomic
def note(incident_id: int, *, by: str, text: str) -> None:
    """Keep a note about an incident."""
    _happened(Incident.objects.get(id=incident_id), Deed.NOTE, by, text)


@transaction.atomic
def mute(incident_id: int, *, seen: int, by: str, reason: str, hours: int | None = None) -> None:
    """Tell nobody of an incident, for some hours or until it is unmuted; it is still counted."""
    incident = _lock(incident_id, seen)
    if incident.state == IncidentState.MUTED:
        raise Conflict(f"{incident.muted_by} muted it already")
    incident.state = IncidentState.MUTED
    incident.muted_at, incident.muted_by = DatabaseNow(), by
    incident.muted_until = DatabaseNow() + timedelta(hours=hours) if hours else None
    _save(incident, "state", "muted_at", "muted_by", "muted_until")
    length = f"for {hours} h" if hours else "until it is unmuted"
    _happened(incident, Deed.MUTED, by, f"{length}: {reason}")


@transaction.atomic
def unmute(incident_id: int, *, seen: int, by: str) -> None:
    """Let people be told of an incident again, and at once of what they missed."""
    incident = _lock(incident_id, seen)
    if incident.state != IncidentState.MUTED:
        raise Conflict("It is not muted any more")
    unmuted(incident)
    if incident.returned_at is not None:
        incident.state = IncidentState.RETURNED
    elif incident.acknowledged_at is not None:
        incident.state = IncidentState.ACKNOWLEDGED
    _save(incident, "state", "muted_at", "muted_by", "muted_until")
    alerts.tell(incident.id)
    _happened(incident, Deed.UNMUTED, by)


@transaction.atomic
def resolve(incident_id: int, *, seen: int, by: str) -> None:
    """Record that an incident is over, where nothing is in error by it: the supervisor would, too."""
    incident = _lock(incident_id, seen)
    if incident.state == IncidentState.RESOLVED:
        raise Conflict("It is resolved already")
    if Step.objects.filter(incident=incident, process_state=StepState.ERROR).exists():
        raise Conflict("Tasks are in error by it: resubmit or undo them first")
    resolve_now(incident, DatabaseNow())
    unmuted(incident)
    incident.state = IncidentState.RESOLVED
    _save(
        incident, "resolved_at", "suffered", "returned_at", "acknowledged_at", "acknowledged_by",
        "state", "muted_at", "muted_by", "muted_until",
    )  # fmt: skip
    _happened(incident, Deed.RESOLVED, by)


def _lock(incident_id: int, seen: int) -> Incident:
    incident = Incident.objects.select_for_update(no_key=True).get(id=incident_id)
    decisive = Event.objects.filter(incident=incident, id__gt=seen)
    if first := decisive.exclude(detail__what__in=BESIDE).order_by("id").first():
        raise Conflict("Somebody was first", first)
    return incident


def _save(incident: Incident, *names: str) -> None:
    incident.save(update_fields=names)


def _happened(incident: Incident, deed: Deed, by: str, text: str = "") -> None:
    told(incident, deed, by, text, person=True).save()
