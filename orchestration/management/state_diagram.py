"""The state diagrams in the docs, drawn from the legal-moves tables."""

from collections.abc import Mapping
from typing import TypeVar

from django.db.models import TextChoices

from ..states import STEP_MOVES, TASK_MOVES

S = TypeVar("S", bound=TextChoices)

INTRODUCTION = """# States

Drawn from the legal-moves tables in `orchestration/states.py` by `python manage.py draw_states`; a
test fails when the two differ. A trigger in the database refuses every other move.
"""


def drawing() -> str:
    """Return the document: a diagram and a table for tasks and for steps."""
    return "\n".join([INTRODUCTION, *_part("Task", TASK_MOVES), *_part("Step", STEP_MOVES)])


def _part(title: str, moves: Mapping[S, Mapping[S, str]]) -> list[str]:
    edges = [(a, b, why) for a, after in moves.items() for b, why in after.items()]
    letters = {edge: _letter(number) for number, edge in enumerate(edges)}
    return [
        f"## {title}\n",
        "```mermaid",
        "stateDiagram-v2",
        f"    [*] --> {next(iter(moves)).value}",
        *(f"    {a.value} --> {b.value}: {letters[a, b, why]}" for a, b, why in edges),
        *(f"    {state.value} --> [*]" for state, after in moves.items() if not after),
        "```\n",
        "| | from | to | when |",
        "| --- | --- | --- | --- |",
        *(f"| {letters[a, b, why]} | {a.value} | {b.value} | {why} |" for a, b, why in edges),
        "",
    ]


def _letter(number: int) -> str:
    return chr(ord("a") + number)
