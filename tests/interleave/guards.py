"""Guards of the product that can be left out, each for a block: runs without one must go wrong."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from orchestration.applications import repeated_postings
from orchestration.applications.repeated_postings import Earlier
from orchestration.decisions import progress
from orchestration.decisions.progress import StepView
from orchestration.models import UndoRequest
from orchestration.states import StepState
from orchestration.transitions import requested_undos


def _of_any_attempt(step: StepView, request: UndoRequest) -> bool:
    return step.state == (StepState.ERROR if request.unmended else StepState.PENDING)


def _of_present_tasks(task: Sequence[Any] | None, _: str | None) -> Earlier | None:
    return _earlier(task, None)


_earlier = repeated_postings.earlier
GUARDS: dict[str, tuple[Any, str, Any]] = {
    "doubt": (progress, "outcome_of_repeat", str),
    "attempt": (requested_undos, "_is_valid", _of_any_attempt),
    "removed": (repeated_postings, "earlier", _of_present_tasks),
}


@contextmanager
def without(name: str) -> Iterator[None]:
    """Leave a guard out in this block; none if `name` is empty. Raises `KeyError`."""
    if name:
        with patch.object(*GUARDS[name]):
            yield
    else:
        yield
