"""What was paid for an order and paid back, by the steps of its task."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from orchestration.api import Direction, Progress, StepState

from .paying import CAPTURE, CARD

# by the name of a step, and whether it is done or undone
KINDS = {
    (CARD, Direction.DO): "authorized",
    (CAPTURE, Direction.DO): "captured",
    (CAPTURE, Direction.UNDO): "refunded",
    (CARD, Direction.UNDO): "released",
}
# a transfer is taken as it arrives
OF_TRANSFER = KINDS | {(CARD, Direction.DO): "captured", (CARD, Direction.UNDO): "refunded"}
SIGNS = {"captured": 1, "refunded": -1}  # of what moves money; others only reserve it


@dataclass(frozen=True, kw_only=True)
class Movement:
    """An amount that was authorized, captured, refunded or released, in minor units."""

    kind: str
    amount: int
    at: datetime | None
    reference: str


def movements(progress: Progress | None) -> Sequence[Movement]:
    """Return what happened to the money, in the order of time; what is under way is not in it."""
    steps = [
        step
        for step in (progress.steps if progress else ())
        if step.state is StepState.PROCESSED and (step.name, step.direction) in KINDS
    ]
    # what is undone has the amount of what was done
    amounts = {
        step.name: int(step.request.get("amount", 0))
        for step in steps
        if step.direction is Direction.DO
    }
    by_transfer = any(
        (step.name, step.direction) == (CARD, Direction.DO) and (step.result or {}).get("taken")
        for step in steps
    )
    moved = [
        Movement(
            kind=(OF_TRANSFER if by_transfer else KINDS)[step.name, step.direction],
            amount=amounts.get(step.name, 0),
            at=step.ended_at,
            reference=str((step.result or {}).get("id", "")),
        )
        for step in steps
    ]
    return sorted(moved, key=lambda movement: (movement.at is None, movement.at))


def balance(moved: Sequence[Movement]) -> int:
    """Return what came in and was not paid back."""
    return sum(SIGNS.get(movement.kind, 0) * movement.amount for movement in moved)
