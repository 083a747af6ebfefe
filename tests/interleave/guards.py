"""Guards of the product that can be left out, each for a block: runs without one must go wrong."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from orchestration.applications import repeated_postings
from orchestration.applications.repeated_postings import Earlier
from orchestration.decisions import input_change, progress
from orchestration.decisions.progress import StepView
from orchestration.models import UndoRequest
from orchestration.states import StepState
from orchestration.transitions import requested_undos, resubmit, undo


def _of_any_attempt(step: StepView, request: UndoRequest) -> bool:
    return step.state == (StepState.ERROR if request.unmended else StepState.PENDING)


def _keep(steps: Collection[int]) -> None:
    """Take back no request for steps that are tried again."""


def _of_present_tasks(task: Sequence[Any] | None, _: str | None) -> Earlier | None:
    return _earlier(task, None)


def _in_doubt_or_not(
    step: StepView, outcome: str, code: str, *, doubt: bool, undoing: bool
) -> bool:
    return _is_passed(step, outcome, code, doubt=False, undoing=undoing)


def _has_used_nothing(*_: object) -> bool:
    return False


def _these_alone(_: Collection[StepView], names: Collection[str]) -> set[str]:
    return set(names)


_earlier = repeated_postings.earlier
_is_passed = progress._is_passed
GUARDS: dict[str, Sequence[tuple[Any, str, Any]]] = {
    "doubt": [(progress, "outcome_of_repeat", str)],
    # two guards against one fault: each is enough
    "attempt": [(requested_undos, "_is_valid", _of_any_attempt), (resubmit, "take_back", _keep)],
    "pass": [(progress, "_is_passed", _in_doubt_or_not)],
    "used": [(input_change, "_has_used", _has_used_nothing)],
    "part": [(undo, "part_of", _these_alone)],
    "removed": [(repeated_postings, "earlier", _of_present_tasks)],
}


@contextmanager
def without(name: str) -> Iterator[None]:
    """Leave a guard out in this block; none if `name` is empty. Raises `KeyError`."""
    with ExitStack() as stack:
        for guard in GUARDS[name] if name else ():
            stack.enter_context(patch.object(*guard))
        yield
