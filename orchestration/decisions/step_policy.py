"""What the business wants of a step where that is not what its agent's policy says. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypedDict

from .recovery import Thresholds


class StepPolicyValues(TypedDict, total=False):
    """What differs from the policy of the step's agent; times are in seconds.

    Limits of the service itself (window, rate, breaker, timeouts, tries) are the agent's alone.

    >>> urgent: StepPolicyValues = {"failure_threshold": 10, "on_rejection": "undo"}
    >>> mail = Step(name="mail", agent="greeter", action="greet", request={"to": field("email")},
    ...             undo=None, policy=urgent)
    """

    failure_threshold: int
    past_threshold: Literal["error", "wait", "undo"]
    extended_wait: float
    max_extended_waits: int
    on_rejection: Literal["error", "wait", "undo"]
    resolve_within: float
    undo_threshold: int


OF_STEPS = tuple(StepPolicyValues.__annotations__)


def with_own(agents: Thresholds, own: Mapping[str, Any]) -> Thresholds:
    """Return an agent's thresholds with a step's own values in their places.

    An undo is tried at least as often as what it undoes, whichever of the two numbers is the agent's.
    """
    if not own:
        return agents
    merged = replace(agents, **own)
    return replace(merged, undo_threshold=max(merged.undo_threshold, merged.failure_threshold))


def undo_is_too_short(agents: Thresholds, own: Mapping[str, Any]) -> str:
    """Return both thresholds, in words, if an undo would be tried less often than what it undoes; else ""."""
    merged = replace(agents, **own)
    if merged.undo_threshold >= merged.failure_threshold:
        return ""
    return f"failure threshold {merged.failure_threshold}, undo threshold {merged.undo_threshold}"
