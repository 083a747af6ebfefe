"""How a task is undone: a pure plan over its steps (P11, P12, P28).

What was done, or may have been, is undone in the reverse order of the steps; what was not begun is
cancelled; what is in doubt is settled first, and what an agent has at this moment is waited for.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .progression import StepPlan, StepView
from .readiness import build, needs_result
from .states import DONE_STEP_STATES, Direction, StepState

UNUSED = (StepState.WAITING, StepState.CANCELLED)  # steps that were not sent, or let nothing happen


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


def is_uncounted(
    step: StepView, undo: StepView | None, *, generation: int, result: Mapping[str, Any] | None
) -> bool:
    """Return whether an effect that shows late counts nowhere: no state of the task stands for it.

    `generation` (0: unknown) and `result` are of the reply that shows it; without a result it may
    have happened. `undo` is the undo step.
    """
    if generation not in {0, step.generation}:
        return True
    if step.state == StepState.SKIPPED:
        # a person knew whether it was done; the same result is what was typed in
        return result is not None and result != step.result
    if step.state != StepState.CANCELLED:
        return False  # done, or the next try under this key finds it
    # an undo by key that was sent takes back whatever the key made
    return undo is None or undo.state in UNUSED or needs_result(step.name, undo.request)


def late_undo(
    steps: Collection[StepView], done: StepView, undo: StepView | None, data: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the request that undoes an effect that shows late, or None if none can be sent.

    `done` is its step, with the result and the generation of the reply that shows it.
    """
    spent = undo is not None and undo.state not in UNUSED
    if done.direction == Direction.UNDO or done.state != StepState.CANCELLED or spent:
        return None
    if not done.undo_action:
        return None
    others = [step for step in steps if step.id != done.id]
    proven = replace(done, state=StepState.PROCESSED)
    template = replace(done, direction=Direction.UNDO, request=done.undo_request or {})
    return build(template, [*others, proven], data)


def _followers(name: str, steps: Collection[StepView]) -> set[str]:
    """Return the steps that come after `name`, directly or through others."""
    found: set[str] = set()
    fresh = {name}
    while fresh:
        fresh = {step.name for step in steps if fresh.intersection(step.after)} - found
        found |= fresh
    return found
