"""How a task is undone: a pure plan over its steps (P11, P12, P28).

What was done, or may have been, is undone in the reverse order of the steps; what was not begun is
cancelled; what is in doubt is settled first, and what an agent has at this moment is waited for.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..payloads.placeholders import loads_of
from ..states import LOCAL, Direction, Outcome, StepState
from .progress import StepPlan, StepView
from .readiness import build, needs_result

UNUSED = (StepState.WAITING, StepState.CANCELLED)  # undo steps that were not sent
GIVEN_UP = (StepState.SKIPPED, StepState.CANCELLED)  # nothing was done, as far as is known
GOES_ON = (StepState.PENDING, StepState.PROCESSING, StepState.ERROR)
GOES_ON_OR_AWAITS = (*GOES_ON, StepState.AWAITING)
SENT = (StepState.PENDING, StepState.PROCESSING, StepState.PROCESSED, StepState.ERROR)


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoPlan:
    """What an undo begins with; steps by their ids, undo steps as plans.

    `standing` are the steps that cannot be undone although they were done, or may have been.
    """

    cancel: tuple[int, ...]
    settle: tuple[int, ...]
    undo: tuple[StepPlan, ...]
    standing: tuple[StepView, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class LateEffect:
    """An effect that no state of its task stands for, shown by a reply that came too late.

    `done` is the step as the reply has it, `undo` its undo step if there is one, and `request` what is
    sent to undo it, or None if that is for a person.
    """

    done: StepView
    undo: StepView | None
    request: Mapping[str, Any] | None


def part_of(steps: Collection[StepView], names: Collection[str]) -> set[str] | None:
    """Return the names of steps and of all that come after them; None if these are all steps of the task."""
    does = [step for step in steps if step.direction == Direction.DO]
    part = set(names).union(*(_followers(name, does) for name in names))
    return part if len(part) < len(does) else None


def plan(steps: Collection[StepView], part: Collection[str] | None = None) -> UndoPlan:
    """Return the plan for a task with these steps, or for a part of them; what was undone before stays so."""
    does = [step for step in steps if step.direction == Direction.DO]
    before = {step.name for step in steps if step.direction == Direction.UNDO}
    concerned = [step for step in _left(steps) if part is None or step.name in part]
    begun = [step for step in concerned if may_be_done(step)]
    undone = {step.name for step in begun if step.undo_action}
    return UndoPlan(
        cancel=tuple(
            step.id
            for step in concerned
            if is_accepted(step) or not (step.state == StepState.SKIPPED or may_be_done(step))
        ),
        settle=tuple(
            step.id for step in begun if step.state != StepState.PROCESSED and not is_accepted(step)
        ),
        undo=tuple(
            StepPlan(
                name=step.name,
                agent=step.agent,
                action=step.undo_action,
                after=sorted((undone | before) & _followers(step.name, does)),
                request=step.undo_request or {},
                direction=Direction.UNDO,
                loads=loads_of(step.undo_request),
            )
            for step in begun
            if step.name in undone
        ),
        standing=tuple(step for step in begun if step.irreversible),
    )


def standing(steps: Collection[StepView]) -> list[StepView]:
    """Return the steps that cannot be undone although they were done, or may have been."""
    return [step for step in _left(steps) if step.irreversible and may_be_done(step)]


def _left(steps: Collection[StepView]) -> list[StepView]:
    """Return the steps that an undo has not come to."""
    before = {step.name for step in steps if step.direction == Direction.UNDO}
    return [
        step
        for step in steps
        if step.direction == Direction.DO
        and step.state != StepState.CANCELLED
        and step.name not in before
    ]


def signature(undo_plan: UndoPlan) -> str:
    """Return a short text that differs for plans that do different things."""
    parts = (
        undo_plan.cancel,
        undo_plan.settle,
        tuple(undo.name for undo in undo_plan.undo),
        tuple(step.id for step in undo_plan.standing),
    )
    return hashlib.blake2s(repr(parts).encode(), digest_size=8).hexdigest()


def may_be_done(step: StepView) -> bool:
    """Return whether a step had its effect, or may have had it, or may have it any moment."""
    if step.makes_children and step.attempt:
        return True
    at_work = step.state == StepState.PROCESSING and step.locked_by is not None
    return step.state == StepState.PROCESSED or step.in_doubt or at_work or is_accepted(step)


def is_accepted(step: StepView) -> bool:
    """Return whether a service has a step that ends later: what it comes to is not waited for by an undo.

    So are the children of a step: these are undone whether they have ended or not.
    """
    if step.makes_children:
        return bool(step.attempt) and step.state in GOES_ON_OR_AWAITS
    waits = step.state in {StepState.AWAITING, StepState.ERROR}
    return waits and step.outcome == Outcome.LATER and step.agent != LOCAL


def shows_effect(outcome: str, in_doubt: bool | None) -> bool:
    """Return whether a reply that changes no step any more shows that an effect was, or may be."""
    return outcome in {Outcome.DONE, Outcome.UNKNOWN, Outcome.LATER} or bool(in_doubt)


def was_accepted(step: StepView, outcome: str, generation: int) -> bool:
    """Return whether a late reply says only that a step was accepted, which has ended or is awaited."""
    goes_on = step.state in {StepState.PROCESSED, StepState.AWAITING}
    return goes_on and outcome == Outcome.LATER and generation == step.generation


def will_reveal_effect(step: StepView, generation: int) -> bool:
    """Return whether the next try of a step will find an effect under a generation of its key."""
    return step.state in GOES_ON and generation == step.generation


def proven(step: StepView) -> StepView:
    """Return a step that goes on, under whose key an effect has shown, or may have been.

    That an attempt which is out at this moment finds none no longer counts as an answer: it may have asked
    before. Its outcome says so until it ends.
    """
    out = step.state == StepState.PROCESSING and step.locked_by is not None
    return step.altered(in_doubt=True, outcome=Outcome.UNKNOWN if out else step.outcome)


def late_effect(
    step: StepView,
    steps: Collection[StepView],
    data: Mapping[str, Any],
    *,
    result: Mapping[str, Any] | None,
    generation: int,
) -> LateEffect | None:
    """Return the late effect of a step under a generation of its key, if no task state accounts for it.

    Without a result it only may have happened. Its undo can be sent if the step was cancelled, as an undo
    does, and the one undo of the step was not sent yet.
    """
    done = step.altered(result=result, generation=generation)
    undoes = (candidate for candidate in steps if candidate.direction == Direction.UNDO)
    undo = next((candidate for candidate in undoes if candidate.name == step.name), None)
    request = _request_of_undo(steps, done, data)
    if not _is_uncounted(step, done, undo, request):
        return None
    spent = undo is not None and undo.state not in UNUSED
    if step.state != StepState.CANCELLED or spent:
        request = None
    return LateEffect(done=done, undo=undo, request=request)


def _request_of_undo(
    steps: Collection[StepView], done: StepView, data: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the request that undoes an effect of a step, or None if none can be sent.

    `done` is the step as the reply that shows the effect has it: with its result, if it brings one,
    and the generation of its key. Without it, an undo that takes the result is for a person.
    """
    if done.direction == Direction.UNDO or not done.undo_action:
        return None
    if done.result is None and needs_result(done.name, done.undo_request):
        return None
    others = [step for step in steps if step.id != done.id]
    proven = done.altered(state=StepState.PROCESSED)
    template = done.altered(direction=Direction.UNDO, request=done.undo_request or {})
    return build(template, [*others, proven], data)


def _is_uncounted(
    step: StepView, done: StepView, undo: StepView | None, request: Mapping[str, Any] | None
) -> bool:
    """Return whether no task state accounts for an effect that shows late.

    `done` is as for `_request_of_undo`, which returned `request`; without a result it may have
    happened. `undo` is the undo step, if there is one.
    """
    if (
        undo is not None
        and undo.state in SENT
        and not undo.done_by
        and _agree(request, undo.request)
    ):
        return False  # taken back with what it was sent for
    if done.generation != step.generation or step.state in GIVEN_UP:
        return True
    if step.state == StepState.PROCESSED:
        # the same result is a repeat, or what a person typed in; another is of another effect
        return done.result is not None and not _agree(done.result, step.result)
    # otherwise it is done, or the next try under this key finds it
    return step.state == StepState.WAITING and done.result is not None


def _agree(first: Any, second: Any) -> bool:
    """Return whether two results, or requests made of them, are of one effect.

    They have the same values in all fields that both have: a service may add that it has answered before.
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping) and first != second:
        shared = first.keys() & second.keys()
        return bool(shared) and all(_agree(first[name], second[name]) for name in shared)
    return bool(first == second)


def _followers(name: str, steps: Collection[StepView]) -> set[str]:
    """Return the steps that come after `name`, directly or through others."""
    followers: set[str] = set()
    fresh = {name}
    while fresh:
        fresh = {step.name for step in steps if fresh.intersection(step.after)} - followers
        followers |= fresh
    return followers
