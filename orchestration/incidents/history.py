"""What happened to incidents, by people and by itself: lines of the one history."""

from ..models import Event, Incident
from ..models.history import EventKind
from ..models.incident import Deed


def told(incident: Incident, deed: Deed, by: str, text: str = "", *, person: bool = False) -> Event:
    """Return a line of an incident's history, still to be written; `person` says that one did it."""
    return Event(
        incident=incident,
        kind=EventKind.INCIDENT if person else EventKind.CAUSE,
        actor=by,
        reason=text,
        detail={"what": deed.value, "title": incident.title},
    )
