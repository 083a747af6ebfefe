"""Updates name the version of each step that they were decided on: its state, attempt and generation.

A row that has another by now is not written. If a write has fewer rows than were decided, nothing of its
transaction may be committed: `require` raises `ConcurrentUpdate`, and the batch is decided anew. The
locks of tasks prevent that; what keeps to no lock, as a person's session may, is found out by this.
"""

from collections.abc import Iterable, Sequence, Sized
from typing import Any, Protocol

from ..database.sql import ConcurrentUpdate
from ..decisions.progress import StepView
from ..states import StepState

# Of an update of steps `s`: the versions are those of `attempts`. A statement adds the states.
AS_DECIDED = """FROM unnest(%(ids)s::bigint[], %(attempts)s::int[], %(generations)s::int[])
    AS r (id, attempt, generation)
WHERE s.id = r.id AND (s.attempt, s.generation) = (r.attempt, r.generation)"""
# The same with the states as they were read (`versions`, `columns`).
AS_READ = """FROM unnest(%(ids)s::bigint[], %(states)s::text[], %(attempts)s::int[], %(generations)s::int[])
    AS r (id, state, attempt, generation)
WHERE s.id = r.id
    AND (s.process_state, s.attempt, s.generation) = (r.state, r.attempt, r.generation)"""


class Versioned(Protocol):
    """A step as it was read: a view, or what a claim knows of it."""

    @property
    def id(self) -> int: ...  # noqa: D102 - columns of the table
    @property
    def attempt(self) -> int: ...  # noqa: D102
    @property
    def generation(self) -> int: ...  # noqa: D102


def versions(steps: Iterable[StepView]) -> dict[str, list[Any]]:
    """Return the versions of steps as they are stored, as columns: ids, states, attempts, generations."""
    steps = list(steps)
    return {"states": [str(step.state) for step in steps], **attempts(steps)}


def attempts(steps: Iterable[Versioned]) -> dict[str, list[Any]]:
    """Return versions without the states, for a statement that says by itself which it changes."""
    steps = list(steps)
    return {
        "ids": [step.id for step in steps],
        "attempts": [step.attempt for step in steps],
        "generations": [step.generation for step in steps],
    }


def columns(rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the versions of steps that are read as rows: id, state, attempt, generation, and others."""
    names = ("ids", "states", "attempts", "generations")
    return {
        name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=False)
    }


def version(step: Versioned, state: StepState) -> dict[str, Any]:
    """Return the conditions of a queryset for one step in this state."""
    return {
        "id": step.id,
        "process_state": state,
        "attempt": step.attempt,
        "generation": step.generation,
    }


def require(written: Sized | int, decided: Sized | int) -> None:
    """Raise `ConcurrentUpdate` if fewer rows were written than decided."""
    rows, steps = (given if isinstance(given, int) else len(given) for given in (written, decided))
    if rows < steps:
        raise ConcurrentUpdate(f"{steps - rows} of {steps} rows have changed since it was decided")
