"""What a scripted service does with a call: one outcome for each call of an action."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..agents.actions import Call, Result
from ..agents.errors import Later, Rejected, Transient, Unknown


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one call ends.

    `effect` is what the service did: the action's result, or None for nothing; an empty one of a success
    is made up by the schema `returns` of the action. `fault` makes the exception that the action raises.
    `replies` is False if the agent never says so. `late_by` is how many seconds after the attempt's
    complete-by time it does; None: in time.
    """

    effect: Mapping[str, Any] | None = None
    fault: Callable[[], BaseException] | None = None
    replies: bool = True
    late_by: float | None = None


# An outcome, or a function that returns the result of a call, or raises what an action may raise.
Scripted = Outcome | Callable[[Call], Result]


def done(result: Mapping[str, Any] | None = None, **fields: Any) -> Outcome:
    """Return the outcome "done" with a result: a mapping, or its fields; made up if neither is given."""
    return Outcome(effect={**(result or {}), **fields})


def rejected(code: str, message: str = "", *, stored: bool = True) -> Outcome:
    """Return a permanent refusal; with `stored`, the service gives it to each repeat of the key."""
    return Outcome(fault=lambda: Rejected(code, message, stored=stored))


def transient(
    code: str = "unavailable", message: str = "", *, retry_after: float | None = None
) -> Outcome:
    """Return a failure of a service that did nothing; `retry_after` is the pause it asks for."""
    return Outcome(fault=lambda: Transient(code, message, retry_after=retry_after))


def in_doubt(code: str = "timeout", message: str = "", *, happened: bool = False) -> Outcome:
    """Return a failure that leaves the effect unknown to the engine; `happened` is the truth."""
    return Outcome(effect={} if happened else None, fault=lambda: Unknown(code, message))


def raises(error: BaseException) -> Outcome:
    """Return a mistake in the agent's code, for which the engine takes any other exception."""
    return Outcome(fault=lambda: error)


def silent(*, happened: bool = False) -> Outcome:
    """Return an attempt without a reply, as if the agent's worker had died; `happened` is the truth."""
    return Outcome(effect={} if happened else None, replies=False)


def late(result: Mapping[str, Any] | None = None, *, by: float = 1.0) -> Outcome:
    """Return "done", replied `by` seconds after the complete-by time of the attempt."""
    return Outcome(effect=dict(result or {}), late_by=by)


def later(
    accepted: Mapping[str, Any] | None = None,
    *,
    id: str = "",  # noqa: A002 - what the service calls it
    look: float | None = None,
) -> Outcome:
    """Return an acceptance: the result comes later, by `api.complete` or as the agent is asked."""
    return Outcome(fault=lambda: Later(accepted=accepted, id=id, look=look))
