"""Where an incident stands: a pure decision over what is known of it."""

from dataclasses import dataclass

from ..models.incident import IncidentState

# How long a cause that only ever failed attempts, and stopped no task, must have been silent until
# it counts as over: so a service that stumbles now and then does not come back every minute.
QUIET = 900.0  # seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What is known of an incident at one moment."""

    state: str
    suffering: int  # tasks in error by it
    struggling: bool  # a step whose last failure it was has yet to be done
    retrying: bool  # something that was resubmitted is under way
    failed: bool = False  # it struck since the last look
    suffered: bool = False  # a task was in error by it since it was last resolved
    returned: bool = False  # it struck after it was resolved or resubmitted, and nobody knows yet
    acknowledged: bool = False
    silent: float = 0.0  # seconds since it last struck
    muted: bool = False  # by somebody, and that is not over


def standing(facts: Facts) -> IncidentState:  # noqa: PLR0911 - read from top to bottom
    """Return where an incident stands."""
    if facts.muted:
        return IncidentState.MUTED
    if facts.retrying:
        return IncidentState.RETRYING
    over = facts.suffering <= 0 and not facts.struggling
    if over and (facts.suffered or facts.silent >= QUIET):
        return IncidentState.RESOLVED
    if over and facts.state == IncidentState.RESOLVED and not facts.failed:
        return IncidentState.RESOLVED
    if facts.returned:
        return IncidentState.RETURNED
    if facts.acknowledged:
        return IncidentState.ACKNOWLEDGED
    return IncidentState.NEW
