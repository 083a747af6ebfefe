"""What a change of a task's input means for its steps: which have used the former values."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..payloads.placeholders import Unresolved, at, has, placeholders
from ..states import Direction, StepState
from .progress import StepView
from .readiness import NOT_BUILT, Released, value_of

UNSENT = (StepState.PENDING, StepState.AWAITING)


class Templates(NamedTuple):
    """What a workflow declares of a step that its row has no more once its request is built."""

    request: Mapping[str, Any]
    charges: Mapping[str, Any] | None


@dataclass(frozen=True)
class TakenBy:
    """The steps that have used a value that was to change, by name."""

    steps: tuple[str, ...]


@dataclass(kw_only=True)
class InputChange:
    """What follows for the steps of a task: requests to send instead of those that were built."""

    taken: list[str] = field(default_factory=list)
    rebuilt: list[Released] = field(default_factory=list)


def takes(template: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a template takes a value of the input that is another one after the change."""
    paths = [names for origin, *names in placeholders(template) if not origin]
    return any(
        (has(before, path), at(before, path)) != (has(after, path), at(after, path))
        for path in paths
    )


def input_change(
    steps: Collection[StepView],
    declared: Mapping[str, Templates],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> InputChange:
    """Return what a change of a task's input means for its steps.

    A step that waits takes the new values by itself. One whose request was built and never sent gets another
    request. Any other step has used the values that its request, its condition, its time, its charges and
    the request of its undo take, and so has one that is no longer `declared` as it was.
    """
    change = InputChange()
    for step in _begun(steps):
        known = declared.get(step.name)
        request = None
        if step.attempt == 0 and step.state in UNSENT and not _has_decided(step, before, after):
            if known and not takes(known.request, before, after):
                continue
            request = _rebuilt(step, known, steps, before, after)
        elif not _has_used(step, known, before, after):
            continue
        if request is None:
            change.taken.append(step.name)
        else:
            change.rebuilt.append(Released(id=step.id, request=request))
    return change


def _begun(steps: Iterable[StepView]) -> Iterable[StepView]:
    """Yield the steps whose templates have been filled in."""
    for step in steps:
        unbuilt = step.state == StepState.ERROR and step.error_code == NOT_BUILT
        if step.direction == Direction.DO and step.state != StepState.WAITING and not unbuilt:
            yield step


def _has_decided(step: StepView, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether what was decided as the step began took a former value."""
    flow = step.flow
    return flow is not None and takes([flow.when, flow.ends_within], before, after)


def _has_used(
    step: StepView, known: Templates | None, before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    """Return whether a step that was sent, or skipped, took a former value."""
    if _has_decided(step, before, after):
        return True
    if step.state == StepState.SKIPPED and step.attempt == 0:
        return False  # by its condition: nothing was sent
    if known is None:
        return True
    return takes([known.request, known.charges, step.undo_request], before, after)


def _rebuilt(
    step: StepView,
    known: Templates | None,
    steps: Collection[StepView],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Mapping[str, Any] | None:
    """Return the request by the new values; None if the present one is not by this template.

    Raises `Unresolved` if it cannot be built.
    """
    if known is None:
        return None
    try:
        was: Any = value_of(known.request, steps, before)
    except Unresolved:
        return None
    if was != step.request:
        return None  # changed by a person, or declared otherwise by then
    request: Mapping[str, Any] = value_of(known.request, steps, after)
    return request
