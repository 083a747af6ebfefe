"""Handle effects that replies show after their attempt was given up."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from ..alerting import alerts
from ..decisions.compensation import (
    UNUSED,
    LateEffect,
    late_effect,
    proven,
    shows_effect,
    was_accepted,
    will_reveal_effect,
)
from ..decisions.progress import StepPlan, StepView
from ..messaging.messages import Reply
from ..models import Attempt
from ..models.alert import Severity
from ..models.history import EventKind
from ..payloads.keys import step_key
from ..payloads.placeholders import loads_of
from ..states import Direction, Outcome, StepState
from . import moves
from .change import Change
from .following import insert_new_steps
from .new_steps import NewStep

UNDONE_BY_ITSELF = "It is being undone or was undone: the undo of this step is sent as well."
FOR_A_PERSON = (
    "This effect is not undone automatically. Check with the service what was done with this key, "
    "settle it by hand, then close this alert."
)


def detect_late_effects(
    replies: Sequence[Reply], changes: Mapping[UUID, Change], *, by: str
) -> list[tuple[Change, StepView]]:
    """Decide about effects that refused replies show; return the steps concerned, with their tasks.

    A step that continues, or is in error, is in doubt from then on: the next try under its key finds
    the effect. A step that has ended raises an alert; if its task is being undone, or was, its undo
    is sent.
    """
    late_steps: list[tuple[Change, StepView]] = []
    for reply in replies:
        change = changes.get(reply.task)
        step = change.steps.get(reply.step) if change else None
        if change is None or step is None or not shows_effect(reply.outcome, reply.in_doubt):
            continue
        generation = reply.generation or step.generation
        if will_reveal_effect(step, generation):
            if reply.outcome != Outcome.DONE and not step.in_doubt and _was_in_doubt(reply):
                continue  # that was known, and settled since under the same key
            shown = proven(step)
            change.move(moves.DOUBTED, shown, outcome=shown.outcome)
            late_steps.append((change, step))
            continue
        if was_accepted(step, reply.outcome, generation):
            continue
        result = reply.result if reply.outcome in {Outcome.DONE, Outcome.LATER} else None
        if result is None and generation < step.generation and _was_in_doubt(reply):
            continue  # that was known, and settled, before the key changed
        insert_new_steps([change])  # of an undo that has just begun
        late = late_effect(
            step, change.steps.values(), change.data, result=result, generation=generation
        )
        if late is not None:
            if late.request is not None:
                _undo(change, late, late.request)
            _alarm(change, late, by=by)
            late_steps.append((change, step))
    return late_steps


def _was_in_doubt(reply: Reply) -> bool:
    """Return whether the attempt was recorded as one that may have had its effect."""
    ended = Attempt.objects.filter(step=reply.step, number=reply.attempt)
    return ended.filter(outcome__in=(Outcome.EXPIRED, Outcome.UNKNOWN)).exists()


def _undo(change: Change, late: LateEffect, request: Mapping[str, Any]) -> None:
    """Have an effect undone whose step had been given up: by its undo step, or by one more."""
    step, undo = late.done, late.undo
    if not change.undoing:  # its step was undone alone
        change.notify_of_part([step.name])
    if undo is not None:
        revived = undo.altered(state=StepState.PENDING, request=request)
        change.move(moves.REVIVED, revived, arrival=change.next_in_line(undo), request=request)
        return
    plan = StepPlan(
        name=step.name, agent=step.agent, action=step.undo_action, after=(), request=request,
        state=StepState.PENDING, direction=Direction.UNDO, loads=loads_of(step.undo_request),
    )  # fmt: skip
    change.new_steps.append(NewStep(change.id, change.priority, change.fairness_key, plan))


def _alarm(change: Change, late: LateEffect, *, by: str) -> None:
    """Raise the alert of a late effect, and note it in the history."""
    done, undone = late.done, late.request is not None
    key = step_key(change.id, done.name, done.direction, done.generation)
    what = UNDONE_BY_ITSELF if undone else FOR_A_PERSON
    if change.steps[done.id].state == StepState.PROCESSED:
        title = (
            f"{change.workflow}: {done.name} may have been done twice: two results under one key"
        )
    else:
        had = "may have had" if done.result is None else "had"
        title = f"{change.workflow}: {done.name} {had} its effect after it was given up"
    change.alarms.append(
        alerts.AlertReport(
            fingerprint=_sent(change.id, done.name)
            if undone
            else f"{alerts.LATE_EFFECT}{key.replace(':', '/')}",
            severity=Severity.WARNING if undone else Severity.CRITICAL,
            title=title[:300],
            detail=f"Idempotency key: {key}. {what}",
        )
    )
    change.note(done, EventKind.LATE, by=by, reason=f"Idempotency key: {key}. {what}")


def close_undone(undo: StepView, change: Change) -> None:
    """Close the alert of a late effect whose undo step has ended well."""
    steps = change.steps.values()
    if any(
        step.name == undo.name and step.direction == Direction.DO and step.state in UNUSED
        for step in steps
    ):
        change.recovered.append(_sent(change.id, undo.name))


def _sent(task: UUID, step: str) -> str:
    """Return the cause of the alert about an effect whose undo was sent: a step has one undo."""
    return f"{alerts.LATE_EFFECT}{task}/{step}/undo"
