"""How a step ends by its child tasks, and which of these are undone with it: pure decisions."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from ..payloads.limits import why_not_kept
from ..payloads.text import as_text
from ..states import Direction, Outcome, StepState, TaskState
from .flow import CHILD_UNDONE, PASS
from .progress import StepView

NOT_UNDONE, NO_RESULT, TOO_LARGE = "child_not_undone", "no_child_result", "result_too_large"
NAMED = 5  # children in a message


class Child(Protocol):
    """What decisions need of a child task: `position` is that of its item in the list of its step."""

    @property
    def position(self) -> int | None: ...  # noqa: D102 - columns of the table
    @property
    def state(self) -> str: ...  # noqa: D102
    @property
    def reference(self) -> str: ...  # noqa: D102
    @property
    def result(self) -> Any: ...  # noqa: D102
    @property
    def undo_at(self) -> datetime | None: ...  # noqa: D102


class Ending(NamedTuple):
    """How a step ends, or its undo: done with a result, or rejected with a code."""

    outcome: str = Outcome.DONE.value
    result: Mapping[str, Any] = {}
    code: str = ""
    message: str = ""


def concern(step: StepView) -> bool:
    """Return whether a step without an agent is done by children, or undoes these: no other has an undo."""
    return step.makes_children or step.direction == Direction.UNDO


def undoes(undo: StepView | None) -> bool:
    """Return whether an undo step awaits that all children of its step are undone."""
    return undo is not None and undo.state == StepState.AWAITING


def may_undo(step: StepView, undo: StepView | None, *, undoing: bool) -> bool:
    """Return whether children of a step are to be undone still; `undoing`: the task of the step is."""
    return undoes(undo) or (not undoing and step.state == StepState.PROCESSED)


def lacks(step: StepView, position: int) -> bool:
    """Return whether a step has ended without the result of the child for an item."""
    items = (step.result or {}).get("items", ())
    return position >= len(items) or items[position] is None


def awaits_children(step: StepView, undo: StepView | None, *, undoing: bool) -> bool:
    """Return whether the end of its children ends a step, or its undo."""
    return undoes(undo) or (not undoing and step.state == StepState.AWAITING)


def ending(step: StepView, children: Sequence[Child], *, running: bool) -> Ending:
    """Return how a step ends by its children, in the order of their making for each item.

    Of several for one item that counts which is not undone. `running`: some go on, and enough others are
    processed.
    """
    in_turn = sorted(children, key=lambda child: child.undo_at is None)
    last = {child.position: child for child in in_turn}
    processed = [child for child in last.values() if child.state == TaskState.PROCESSED]
    flow = step.flow
    undone = [child for child in last.values() if child.state != TaskState.PROCESSED]
    is_enough = running or bool(flow and flow.enough and len(processed) >= flow.enough)
    if undone and not is_enough and not (flow and flow.on(CHILD_UNDONE) == PASS):
        return _refused(CHILD_UNDONE, undone, "was undone")
    if unknown := [child for child in processed if child.result is None]:
        why = "has no result: the template of its workflow has no value"
        return _refused(NO_RESULT, unknown, why)
    results = {child.position: child.result for child in processed}
    result = {"items": [results.get(position) for position in range(len(step.request["items"]))]}
    if why := why_not_kept(as_text(result), result):
        return Ending(outcome=Outcome.REJECTED, code=TOO_LARGE, message=why)
    return Ending(result=result)


def ending_of_undo(children: Collection[Child]) -> Ending:
    """Return how the undo of a step ends by its children."""
    if left := [child for child in children if child.state != TaskState.UNDONE]:
        return _refused(NOT_UNDONE, left, "cannot be undone")
    return Ending()


def _refused(code: str, children: Sequence[Child], why: str) -> Ending:
    named = ", ".join(child.reference for child in children[:NAMED])
    more = f" and {len(children) - NAMED:,} more" if len(children) > NAMED else ""
    return Ending(outcome=Outcome.REJECTED, code=code, message=f"{named}{more} {why}")
