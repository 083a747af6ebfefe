"""How a task is undone: a pure plan over its steps (P11, P12, P28).

What was done, or may have been, is undone in the reverse order of the steps; what was not begun is
cancelled; what is in doubt is settled first, and what an agent has at this moment is waited for.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from .progression import StepPlan, StepView
from .states import DONE_STEP_STATES, Direction, StepState


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoPlan:
    """What an undo begins with; steps by their ids, undo steps as plans.

    `standing` are the steps that cannot be undone although they were done, or may have been.
    """

    cancel: tuple[int, ...]
    settle: tuple[int, ...]
    undo: tuple[StepPlan, ...]
    standing: tuple[StepView, ...]


def plan(steps: Collection[StepView]) -> UndoPlan:
    """Return the plan for a task with these steps."""
    does = [step for step in steps if step.direction == Direction.DO]
    begun = [step for step in does if may_be_done(step)]
    undone = {step.name for step in begun if step.undo_action}
    return UndoPlan(
        cancel=tuple(step.id for step in does if not may_be_done(step)),
        settle=tuple(step.id for step in begun if step.state not in DONE_STEP_STATES),
        undo=tuple(
            StepPlan(
                name=step.name,
                agent=step.agent,
                action=step.undo_action,
                after=sorted(undone & _followers(step.name, does)),
                request=step.undo_request or {},
                ready=False,
                direction=Direction.UNDO,
            )
            for step in begun
            if step.name in undone
        ),
        standing=tuple(step for step in begun if step.irreversible),
    )


def signature(wanted: UndoPlan) -> str:
    """Return a short text that differs for plans that do different things."""
    told = (
        wanted.cancel,
        wanted.settle,
        tuple(undo.name for undo in wanted.undo),
        tuple(step.id for step in wanted.standing),
    )
    return hashlib.blake2s(repr(told).encode(), digest_size=8).hexdigest()


def may_be_done(step: StepView) -> bool:
    """Return whether a step had its effect, or may have had it, or may have it any moment."""
    at_work = step.state == StepState.PROCESSING and step.locked_by is not None
    return step.state in DONE_STEP_STATES or step.in_doubt or at_work


def _followers(name: str, steps: Collection[StepView]) -> set[str]:
    """Return the steps that come after `name`, directly or through others."""
    found: set[str] = set()
    fresh = {name}
    while fresh:
        fresh = {step.name for step in steps if fresh.intersection(step.after)} - found
        found |= fresh
    return found
