"""Decide the state of an incident from plain facts."""

from dataclasses import dataclass

from ..models.incident import IncidentState

# A cause that failed attempts but stopped no task is over after this long without a failure. So a
# service that fails now and then does not open its incident again every minute.
QUIET = 900.0  # seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class IncidentFacts:
    """The facts about an incident at one moment."""

    state: str
    open_tasks: int  # tasks in error by it
    active_steps: bool  # a step whose last failure it was has yet to be done
    retrying: bool  # something that was resubmitted is under way
    failed: bool = False  # since the last aggregation
    had_open_tasks: bool = False  # a task was in error by it since it was last resolved
    returned: bool = False  # it struck after it was resolved or resubmitted; not acknowledged since
    acknowledged: bool = False
    silent: float = 0.0  # seconds since its last failure
    muted: bool = False  # and the mute has not ended


def decide_state(facts: IncidentFacts) -> IncidentState:  # noqa: PLR0911 - read from top to bottom
    """Return the state that follows from the facts; the first rule that matches wins."""
    if facts.muted:
        return IncidentState.MUTED
    if facts.retrying:
        return IncidentState.RETRYING
    over = facts.open_tasks <= 0 and not facts.active_steps
    if over and (facts.had_open_tasks or facts.silent >= QUIET):
        return IncidentState.RESOLVED
    if over and facts.state == IncidentState.RESOLVED and not facts.failed:
        return IncidentState.RESOLVED
    if facts.returned:
        return IncidentState.RETURNED
    if facts.acknowledged:
        return IncidentState.ACKNOWLEDGED
    return IncidentState.NEW
