"""Updates name the version of each step that they were decided on: its state, attempt and generation.

A row that has another by now is not written. If a write has fewer rows than were decided, nothing of its
transaction may be committed: `require` raises `ConcurrentUpdate`, and the batch is decided anew. The
locks of tasks prevent that; what keeps to no lock, as a person's session may, is found out by this.
"""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, NamedTuple, Protocol

from ..database import prepared
from ..database.sql import ConcurrentUpdate
from ..decisions.fairness import Arrival
from ..decisions.progress import StepView
from ..payloads.text import as_text
from .turns import next_turns


class Versioned(Protocol):
    """A step as it was read: a view, or what a claim or a sweep knows of it."""

    @property
    def id(self) -> int: ...  # noqa: D102 - columns of the table
    @property
    def state(self) -> str: ...  # noqa: D102
    @property
    def attempt(self) -> int: ...  # noqa: D102
    @property
    def generation(self) -> int: ...  # noqa: D102


class StepUpdate:
    """One kind of update of steps: what it sets in steps `s`, from the rows `r` of its values.

    `columns` are the names of the values and their types in Postgres; those of type jsonb are given as
    Python values. `n.now` is one reading of the clock. `also` are further conditions. `history` is a
    statement that is executed at the same time: it has the rows as `reply`, and the steps as they were
    before.

    >>> PARKED = StepUpdate("held_by_id = r.hold", hold="bigint")
    >>> PARKED.columns
    ('hold',)
    """

    def __init__(
        self,
        sets: str,
        *,
        also: str = "",
        history: str = "",
        returning: str = "s.id",
        **columns: str,
    ) -> None:
        self.columns = tuple(columns)
        self._json = {name for name, kind in columns.items() if kind == "jsonb"}
        types = {
            "ids": "bigint",
            "states": "text",
            "attempts": "int",
            "generations": "int",
            **columns,
        }
        arrays = ", ".join(f"%({name})s::{kind}[]" for name, kind in types.items())
        names = ", ".join(("id", "state", "attempt", "generation", *columns))
        rows = f"unnest({arrays}) AS r ({names})"
        before = ""
        if "n.now" in sets:  # one reading of the clock for all times of a step
            rows += ", (SELECT clock_timestamp() AS now) AS n"
        if history:
            before = f"WITH reply AS MATERIALIZED (SELECT * FROM {rows}), history AS ({history})\n"  # noqa: S608 - constants
            rows = "reply r"
        # by the primary key: where a partial index knew the state, it would be taken
        self.statement = f"""{before}UPDATE orchestration_step s SET {sets}
FROM {rows}
WHERE s.id = r.id
    AND (s.process_state, s.attempt, s.generation) = (r.state, r.attempt, r.generation)
    {also}
RETURNING {returning}"""  # noqa: S608 - the same

    def part(self, steps: Sequence[Versioned], **values: Sequence[Any]) -> prepared.Part:
        """Return the statement for these steps, with the values of each column for each of them."""
        columns = {
            name: _as_texts(values[name]) if name in self._json else list(values[name])
            for name in self.columns
        }
        return prepared.Part(self.statement, {**versions(steps), **columns})

    def write(self, steps: Sequence[Versioned], **values: Sequence[Any]) -> None:
        """Write the steps; raise `ConcurrentUpdate` if any is not what it was."""
        if steps:
            require(prepared.run_all([self.part(steps, **values)]), steps)


class Move(NamedTuple):
    """An update of one step that is decided and not written yet: the step before, and the values.

    With an `arrival` the value `turn` is read when it is written.
    """

    update: StepUpdate
    before: StepView
    values: Mapping[str, Any]
    arrival: Arrival | None = None


def write(moves: Sequence[Move]) -> None:
    """Write moves, each kind of update at once; several of one step in the order of `moves`."""
    turns = iter(next_turns([move.arrival for move in moves if move.arrival]))
    batches: list[dict[StepUpdate, list[Move]]] = []
    earlier: dict[int, int] = {}  # of each step, how many of its moves come before
    for move in moves:
        if move.arrival:
            move = move._replace(values={**move.values, "turn": next(turns)})  # noqa: PLW2901
        number = earlier.get(move.before.id, 0)
        earlier[move.before.id] = number + 1
        if number == len(batches):
            batches.append({})
        batches[number].setdefault(move.update, []).append(move)
    for batch in batches:
        for update, of_kind in batch.items():
            values = {name: [move.values[name] for move in of_kind] for name in update.columns}
            update.write([move.before for move in of_kind], **values)


def versions(steps: Sequence[Versioned]) -> dict[str, list[Any]]:
    """Return the versions of steps as columns: ids, states, attempts, generations."""
    return {
        "ids": [step.id for step in steps],
        "states": [str(step.state) for step in steps],
        "attempts": [step.attempt for step in steps],
        "generations": [step.generation for step in steps],
    }


def require(written: Sized | int, decided: Sized | int) -> None:
    """Raise `ConcurrentUpdate` if fewer rows were written than decided."""
    rows, steps = (count if isinstance(count, int) else len(count) for count in (written, decided))
    if rows < steps:
        raise ConcurrentUpdate(f"{steps - rows} of {steps} rows have changed since it was decided")


def _as_texts(values: Iterable[Any]) -> list[str | None]:
    """Return values as JSON texts; None stays NULL."""
    return [None if value is None else as_text(value) for value in values]
