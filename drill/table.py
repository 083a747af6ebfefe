"""The failure modes, as the files in `drill/modes/` list them: one row for each."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "modes"
SHORT, FULL = "short", "full"
ENDS = ("processed", "error", "undone", "settled")


@dataclass(frozen=True, kw_only=True)
class Mode:
    """One way in which something fails.

    `what` says what fails and `how` by what means it is made to. Shown by the drill's `recipe`,
    called with `given`, or by the tests in `shown_by` (node ids), or by both. `selection` is "short"
    where `make drill` runs it, and "full" where only `DRILL=full make drill` does. `ends` is how
    every order has to end: "processed", "error", "undone", or "settled" for any good end.
    """

    id: str
    family: str
    what: str
    how: str
    recipe: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    shown_by: tuple[str, ...] = ()
    selection: str = FULL
    ends: str = "processed"
    first: bool = False  # the fault is there before the orders are
    orders: int = 0  # how many are in flight; 0: as many as usual
    seconds: float = 3.0  # how long the fault lasts, where it does not end by itself
    pairs: bool = False  # may be drawn for a pair of faults


class BadTable(Exception):
    """A row of the table makes no sense; the text says which and why."""


def load(folder: Path = FOLDER) -> list[Mode]:
    """Return every row, in the order of the files and within them; raise `BadTable`."""
    modes: list[Mode] = []
    for file in sorted(folder.glob("*.toml")):
        content = tomllib.loads(file.read_text())
        modes += [_row(file.name, content["family"], row) for row in content["mode"]]
    ids = [mode.id for mode in modes]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise BadTable(f"two rows have the id {', '.join(twice)}")
    return modes


def _row(file: str, family: str, row: dict[str, Any]) -> Mode:
    try:
        mode = Mode(family=family, **{**row, "shown_by": tuple(row.get("shown_by", ()))})
    except TypeError as error:
        raise BadTable(f"{file}: {row.get('id', row)}: {error}") from None
    if mode.selection not in (SHORT, FULL) or mode.ends not in ENDS:
        raise BadTable(f"{file}: {mode.id}: its selection or its end is none of those there are")
    return mode
