"""Problems of what steps wait for: their time; what brings their result, and by when."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..decisions.flow import PASS
from ..payloads.moments import seconds_or_moment
from ..registry import suggest
from ..states import OnRejection
from ..workflows.step import Step
from . import templates
from .problem import LONGEST_NAME, Problem, shown

SECONDS = "Write seconds, such as 3 * 24 * 3600, or a template of seconds or of an ISO 8601 time."
LATE = (OnRejection.ERROR.value, OnRejection.UNDO.value, PASS)


def malformed(step: Any) -> Iterable[Problem]:
    """Yield the fields of a wait that are of another type than they have to be."""
    for name in ("person", "signal"):
        value = getattr(step, name)
        if not isinstance(value, str) or len(value) > LONGEST_NAME:
            text = f"its {name} is {shown(value)}, not a name of at most {LONGEST_NAME} characters"
            yield Problem("E016", text)
    yield from _timeless(step)
    yield from _never_away(step)
    if step.late not in LATE:
        yield Problem("E016", f"its late is {shown(step.late)}{suggest(str(step.late), LATE)}")
    if isinstance(step.remind, str) or not isinstance(step.remind, Sequence):
        yield Problem("E016", f"its remind is {shown(step.remind)}, not a list of seconds")
    elif list(step.remind) != sorted(step.remind) or any(after <= 0 for after in step.remind):
        yield Problem(
            "E016", "its remind are not seconds after which, each later than the one before"
        )
    if not (step.returns is None or isinstance(step.returns, type | Mapping)):
        yield Problem("E016", f"its returns is {shown(step.returns)}, not a type or a JSON Schema")


def _timeless(step: Any) -> Iterable[Problem]:
    """Yield the times of a step that are none."""
    within, begins = step.ends_within, step.not_before
    number = isinstance(within, int | float) and not isinstance(within, bool)
    if not (within is None or isinstance(within, Mapping) or (number and within > 0)):
        yield Problem(
            "E016", f"its ends_within is {shown(within)}, not seconds, or a template of a time"
        )
    if not (begins is None or isinstance(begins, Mapping)):
        try:
            seconds_or_moment(begins)
        except ValueError as error:
            yield Problem("E016", f"its not_before {error}", SECONDS)
    for name in ("ends_within", "not_before"):
        for problem in templates.not_json(getattr(step, name)):
            yield problem._replace(text=f"its {name} {problem.text}")


def _never_away(step: Any) -> Iterable[Problem]:
    """Yield why a step cannot be refused as its service is away."""
    after = step.away_after
    if after is None:
        return
    if isinstance(after, bool) or not isinstance(after, int | float) or after <= 0:
        yield Problem("E016", f"its away_after is {shown(after)}, not seconds")
    if not step.action:
        yield Problem("E016", "calls no agent whose service may be away: it takes no away_after")


def kind(step: Step) -> Iterable[Problem]:
    """Yield why a step is not one that awaits a person or a signal."""
    if step.person and step.signal:
        yield Problem("E016", "awaits both a person and a signal")
    if step.agent or step.action or step.compute is not None:
        yield Problem("E016", "awaits a person or a signal, and has an agent or a function as well")
    if step.undo or step.undo_request or step.irreversible or step.charges:
        yield Problem(
            "E016",
            "awaits a person or a signal, so it has no effect to be undone: it takes no undo, "
            "undo_request, irreversible or charges",
        )


def of_agent(step: Step) -> Iterable[Problem]:
    """Yield what a step with an agent declares of a wait that it cannot have."""
    if step.is_awaited or step.workflow:
        return
    if step.late == PASS:
        text = "what its service accepted may still be done, so it is not passed over as late"
        yield Problem("E016", text, "Say late='error' or late='undo'.")
    if step.returns is not None:
        yield Problem("E016", "returns is of steps that await a person or a signal")
    if step.compute is not None and (step.ends_within is not None or step.remind):
        yield Problem("E016", "is computed at once: it takes no ends_within or remind")
