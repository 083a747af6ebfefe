"""Decide what follows where a step is refused, or late: a retry, the undo of its task, or an error (P25)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from ..database import clock
from ..decisions.progress import StepView, waits_until
from ..models.history import EventKind
from ..policies import StepKey, of_steps
from ..states import OnRejection, StepState
from . import moves
from .change import Change, FinalFailure
from .holds import held
from .undo import begin


class Rejection(NamedTuple):
    """A refused step of a locked task, as it is to be; `follows` is what its workflow says, if it does."""

    change: Change
    step: StepView
    code: str
    message: str
    follows: str | None = None

    @property
    def declared(self) -> str | None:
        """Return what its workflow says that follows; None: what the policy says."""
        flow = self.step.flow
        return self.follows or (flow.on(self.step.error_code) if flow else None)


def reject(rejected: Sequence[Rejection], *, by: str) -> None:
    """Decide about rejected steps: retry one that is waited for, undo its task, or have it in error.

    Its workflow says by the code whether its task is undone, at once or unless it was resolved by then, or
    else its thresholds do. A held task is undone after its release.
    """
    if not (rejected := _without_patient(rejected, by=by)):
        return
    keys = {
        step.id: StepKey(change.workflow, step.name, step.agent) for change, step, *_ in rejected
    }
    known = of_steps(keys.values())
    follows = {
        rejection.step.id: rejection.declared or known[keys[rejection.step.id]].on_rejection
        for rejection in rejected
        if not rejection.change.undoes(rejection.step)
    }
    to_undo = {step for step, what in follows.items() if what == OnRejection.UNDO}
    held_steps = held(to_undo)
    undone = _begin_undos(
        [rejection for rejection in rejected if rejection.step.id in to_undo - held_steps], by=by
    )
    for change, step, code, message, _ in rejected:
        if change.id in undone:
            continue
        resolve_within = 0.0 if step.id in held_steps else None
        if follows.get(step.id) == OnRejection.WAIT:
            resolve_within = known[keys[step.id]].resolve_within
        change.fail(
            FinalFailure(
                step=step.id,
                code=code,
                message=message,
                attempt=step.attempt,
                resolve_within=resolve_within,
            )
        )


def _begin_undos(rejected: Iterable[Rejection], *, by: str) -> set[UUID]:
    """Begin the undo of the tasks of rejected steps; return those that nothing irreversible prevents."""
    undone: set[UUID] = set()
    for change, step, code, message, follows in rejected:
        why = f"{code}: {message}".strip(": ")
        what = "was late" if follows else "was rejected"
        reason = f"{step.name} {what} ({why})"
        if change.id not in undone and not begin(change, actor=by, reason=reason):
            undone.add(change.id)
    return undone


def _without_patient(rejected: Sequence[Rejection], *, by: str) -> list[Rejection]:
    """Retry the rejected steps that a resubmit waits for (P25); return the others."""
    if not any(rejection.step.patience for rejection in rejected):
        return list(rejected)
    now, others = clock.database_now(), []
    for rejection in rejected:
        change, step = rejection.change, rejection.step
        if not (until := waits_until(step, now)) or step.patience is None:
            others.append(rejection)
            continue
        retried = step.altered(state=StepState.PENDING, generation=step.generation + 1)
        change.move(moves.PATIENTLY_RETRIED, retried, wait=float(step.patience["wait"]))
        reason = f"{rejection.code}: retried until {until}, each time with a new key"
        change.note(step, EventKind.WAITS, by=by, reason=reason)
    return others
