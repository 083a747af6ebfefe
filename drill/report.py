"""The table of verdicts as text, as JSON, and as a page of the documentation."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from drill.modes_table import Mode
from drill.run import PAIR, Result

Say = Callable[[str], None]
HEAD = (
    "mode",
    "orders",
    "retries",
    "detect, s",
    "recover, s",
    "gap, s",
    "lost",
    "double",
    "verdict",
)
PAGE = Path(__file__).parent.parent / "docs" / "results" / "failure-modes.md"
# the lines between which a command writes its part of the page
MODES = ("<!-- modes: written by `python -m drill --document` -->", "<!-- end of modes -->")
RESULTS = ("<!-- results: written by `python -m drill --write` -->", "<!-- end of results -->")


def cells(result: Result) -> tuple[str, ...]:
    """Return a result's row, in the order of `HEAD`."""
    return (
        result.mode,
        str(result.orders),
        str(result.retries),
        _seconds(result.detected),
        _seconds(result.recovered),
        _seconds(result.gap),
        str(result.verdict.lost),
        str(result.verdict.double),
        str(result.verdict),
    )


def _seconds(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value:.1f}"


def line(row: Sequence[str]) -> str:
    """Return one row of the table on the terminal."""
    first, *others = row
    return f"{first:<58}" + "".join(f"{cell:>11}" for cell in others)


def troubles(result: Result, most: int = 5) -> list[str]:
    """Return at most `most` lines, one for each trouble found."""
    every = result.verdict.troubles
    shown = [f"    {trouble}"[:400] for trouble in every[:most]]
    return shown + ([f"    … and {len(every) - most} more"] if len(every) > most else [])


def as_json(results: Iterable[Result], seed: int) -> str:
    """Return everything as one JSON object."""
    rows = [{**asdict(result), "good": result.verdict.good} for result in results]
    return json.dumps({"seed": seed, "results": rows}, indent=1)


def modes(table: Sequence[Mode]) -> str:
    """Return the list of modes as Markdown, one table for each family."""
    text: list[str] = []
    for family, rows in _families(table).items():
        text += [f"### {family}", "", "| mode | what fails | how the fault is made | shown by |"]
        text.append("| --- | --- | --- | --- |")
        for mode in rows:
            shown = [f"drill ({mode.selection})"] if mode.recipe else []
            shown += [f"`{node.replace('::', '`<br>`')}`" for node in mode.shown_by]
            text.append(f"| `{mode.id}` | {mode.what} | {mode.how} | {'<br>'.join(shown)} |")
        text.append("")
    return "\n".join(text)


def results(table: Sequence[Mode], drilled: Sequence[Result], page: Path = PAGE) -> str:
    """Return the results as Markdown: a table for each family, with the last row of each mode.

    The page keeps the rows of modes that were not drilled this time. New pairs replace all old ones.
    """
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    fresh = {result.mode: f"| {' | '.join((*cells(result), today))} |" for result in drilled}
    pairs = {mode: row for mode, row in fresh.items() if PAIR in mode}
    rows = {
        mode: row for mode, row in _rows(page).items() if not pairs or PAIR not in mode
    } | fresh  # fmt: skip
    text: list[str] = []
    for family, listed in _families(table).items():
        text += _section(family, [rows[mode.id] for mode in listed if mode.id in rows])
    text += _section("Pairs", [row for mode, row in rows.items() if PAIR in mode])
    return "\n".join(text)


def _rows(page: Path) -> dict[str, str]:
    """Return the rows of results in a page, by mode."""
    part = page.read_text().partition(RESULTS[0])[2].partition(RESULTS[1])[0]
    rows = {row.split("|")[1].strip(): row for row in part.splitlines() if row.startswith("| ")}
    return {mode: row for mode, row in rows.items() if mode not in {HEAD[0], "---"}}


def _families(table: Sequence[Mode]) -> dict[str, list[Mode]]:
    families: dict[str, list[Mode]] = {}
    for mode in table:
        families.setdefault(mode.family, []).append(mode)
    return families


def _section(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    head = [f"### {title}", "", f"| {' | '.join((*HEAD, 'on'))} |"]
    return [*head, "| --- |" + " --: |" * 7 + " --- | --- |", *rows, ""]


def write(between: tuple[str, str], part: str, page: Path = PAGE) -> None:
    """Replace the text between two lines of the page."""
    begin, end = between
    before, opening, rest = page.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not (opening and ended):
        raise ValueError(f"{page} lacks the lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{part.strip()}\n\n{end}{after}")
