"""Where each cause of waits and errors leads: to its own page, and to the tasks that it affects."""

from django.urls import reverse

from .alert_links import tasks
from .queries.causes import Cause, Kind


def cause_address(cause: Cause) -> str:
    """Return the address of the page where a cause can be acted on."""
    match cause.kind:
        case Kind.INCIDENT:
            return reverse("ops:incident", args=[int(cause.name)])
        case Kind.AGENT:
            return reverse("ops:agents") + (f"#agent-{cause.name}" if cause.name else "")
    return affected_address(cause)


def affected_address(cause: Cause) -> str:
    """Return the address of the list of the tasks that a cause affects."""
    match cause.kind:
        case Kind.INCIDENT:
            return tasks(f"incident:{cause.name}")
        case Kind.AGENT if cause.name:
            return tasks(f"agent:{cause.name}")
        case Kind.AGENT:
            return tasks("state:processing")
    return tasks("is:held")
