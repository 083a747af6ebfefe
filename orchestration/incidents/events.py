"""Events of incidents, made by people and by the engine."""

from ..models import Event, Incident
from ..models.history import EventKind
from ..models.incident import IncidentEventKind


def incident_event(
    incident: Incident, kind: IncidentEventKind, by: str, text: str = "", *, person: bool = False
) -> Event:
    """Build an unsaved event of an incident; `person`: a person caused it, not the engine."""
    return Event(
        incident=incident,
        kind=EventKind.INCIDENT if person else EventKind.CAUSE,
        actor=by,
        reason=text,
        detail={"what": kind.value, "title": incident.title},
    )
