"""The failure modes, one row each, from the files in `drill/modes/`.

Keys at the head of a file are the defaults of its rows.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "modes"
SHORT, FULL = "short", "full"
HA = "ha"  # run by name alone: these need servers of their own
ENDS = ("processed", "error", "undone", "settled")


@dataclass(frozen=True, kw_only=True)
class Mode:
    """One way in which something fails.

    `what` fails, and `how` the fault is made. Proved by the drill's `recipe`, called with `options`,
    by the tests in `shown_by` (node ids), or by both. `make drill` runs the `selection` "short";
    `DRILL=full make drill` also runs "full", and
    `make drill ARGS=ha` runs "ha". `ends` is the required end of every order: "processed",
    "error", "undone", or "settled" for any good end.
    """

    id: str
    family: str
    what: str
    how: str
    recipe: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    shown_by: tuple[str, ...] = ()
    selection: str = FULL
    ends: str = "processed"
    first: bool = False  # apply the fault before orders are placed
    orders: int = 0  # number in flight; 0: the usual number
    seconds: float = 3.0  # duration of the fault, unless it ends by itself
    pairs: bool = False  # may be combined with another mode
    servers: str = ""  # the kind of stack: a key of `drill.ha.stacks.KINDS`
    traffic: bool = (
        False  # whether orders go on coming during the fault, and the longest gap is measured
    )


class InvalidMode(Exception):
    """A row of the table is invalid; the message names the row and the reason."""


def load(folder: Path = FOLDER) -> list[Mode]:
    """Return every row, in the order of the files and within them; raise `InvalidMode`."""
    modes: list[Mode] = []
    for file in sorted(folder.glob("*.toml")):
        content = tomllib.loads(file.read_text())
        rows = content.pop("mode")
        modes += [_row(file.name, content | row) for row in rows]
    ids = [mode.id for mode in modes]
    if repeated := sorted({name for name in ids if ids.count(name) > 1}):
        raise InvalidMode(f"several rows have the id {', '.join(repeated)}")
    return modes


def _row(file: str, row: dict[str, Any]) -> Mode:
    try:
        mode = Mode(**{**row, "shown_by": tuple(row.get("shown_by", ()))})
    except TypeError as error:
        raise InvalidMode(f"{file}: {row.get('id', row)}: {error}") from None
    if mode.selection not in (SHORT, FULL, HA) or mode.ends not in ENDS:
        raise InvalidMode(f"{file}: {mode.id}: unknown selection or end")
    return mode
