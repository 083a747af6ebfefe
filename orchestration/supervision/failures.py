"""Decide about failed and expired steps: what caused the failure, what follows (P10, P11, P26)."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db import transaction

from .. import policies
from ..cluster import crash_points
from ..database import clock
from ..decisions.gate import GateView, answered_since, excuses, observe
from ..decisions.recovery import (
    INSTANCE_SICK,
    Cancel,
    Failure,
    GiveUp,
    Retry,
    Undo,
    decide,
)
from ..states import Outcome
from ..transitions.failures import (
    Failed,
    cancel_undone,
    finish_failed,
    give_up,
    lock_failed,
)
from ..transitions.gates import lock_gates, write
from ..transitions.holds import held
from ..transitions.retries import ask_to_undo, retry
from ..transitions.suspicion import suspected
from .losses import Losses


@transaction.atomic
def recover(
    tasks: Collection[UUID],
    *,
    by: str,
    now: datetime,
    losses: Losses,
    chance: Callable[[], float],
) -> Counter[str]:
    """Count the failures of some tasks and decide about each; return what was decided how often."""
    failed = lock_failed(tasks, now=now, silent_since=losses.silent_since)
    if not failed:
        return Counter()
    known = policies.of_steps([step.key for step in failed])
    excused = _excused(failed, losses)

    decided = [(step, decide(known[step.key], failure, chance())) for step, failure in excused]
    again = [(step, what) for step, what in decided if isinstance(what, Retry)]
    hopeless = [(step, what) for step, what in decided if isinstance(what, Undo)]
    # a hold prevents the undo: the step becomes an error until the hold ends
    undo_held = held([step.view.id for step, _ in hopeless])
    to_undo = [(step, what) for step, what in hopeless if step.view.id not in undo_held]
    lost = [step for step, what in decided if isinstance(what, GiveUp) or step.view.id in undo_held]
    unneeded = [step for step, what in decided if isinstance(what, Cancel)]
    retry(again, by=by)
    ask_to_undo(to_undo, by=by)
    cancel_undone(unneeded, by=by)
    give_up(lost, held=undo_held)
    finish_failed(failed, by=by)
    crash_points.reached("supervisor.before_commit", failed)
    return Counter(
        {
            "retried": len(again),
            "given up": len(lost),
            "to undo": len(to_undo),
            "cancelled": len(unneeded),
        }
    )


def _excused(failed: Sequence[Failed], losses: Losses) -> list[tuple[Failed, Failure]]:
    """Report silent services to their gates; return each failure, excused if the service caused it.

    A step that fails again after its service has answered others is itself the cause. From then on its
    failures count, and say nothing about the service.
    """
    gates = lock_gates({step.agent for step in failed})
    now = clock.database_now().timestamp()
    for agent, observed in suspected(failed, since=losses.at).items():
        if gate := gates.get(agent):
            gate.view = observe(gate.view, gate.limits, observed, now)
    write(gates.values())
    judged = []
    for step in failed:
        view = gates[step.agent].view if step.agent in gates else GateView()
        asked = step.failure.outcome == Outcome.ABSENT  # an answer, not a failure
        sick = step.failure.code == INSTANCE_SICK  # the instance's failure, not the step's
        own = step.view.own_trouble or not (
            asked or sick or not answered_since(view, step.failed_at)
        )
        excused = not own and (excuses(view) or step.failure.put_off > 0)
        failure = replace(step.failure, excused=excused)
        judged.append((replace(step, view=step.view.altered(own_trouble=own)), failure))
    return judged
