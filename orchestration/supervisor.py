"""The supervisor: finds what failed, expired or waits unserved, and asks for recovery (P3, P10, P26).

It knows only the state store. It calls no agent and no workflow: it makes steps pending again, or
sets them to error, and rings doorbells; schedulers and agents carry it out.
"""

import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import transaction

from . import (
    alerts,
    audit,
    conf,
    crashpoints,
    incidents,
    leader,
    notices,
    operations,
    policies,
    presence,
    push,
    queues,
    rollups,
    status,
    vigil,
)
from .gate import Heard, excuses
from .leader import Leadership
from .models import Policy, Step, Submission
from .models.fields import DatabaseNow
from .recovery import Cancel, Failure, GiveUp, Retry, Undo, decide
from .states import StepState
from .transitions import (
    Failed,
    database_now,
    finish_failed,
    give_up,
    hear_all,
    hold_unserved,
    let_be,
    let_go,
    lock_failed,
    lock_gates,
    mark_overdue,
    open_unasked,
    retry,
    suspected,
    undo_for,
    undo_unmended,
    wake,
)

logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Sweep:
    """What one sweep did."""

    retried: int = 0
    given_up: int = 0
    undone: int = 0
    let_be: int = 0
    released: int = 0
    woken: int = 0
    overdue: int = 0
    operated: int = 0

    def __str__(self) -> str:
        done = ((name.replace("_", " "), count) for name, count in vars(self).items() if count)
        return ", ".join(f"{count} {name}" for name, count in done)


class Watch:
    """One supervisor's duty: hold the lease or wait for it, and sweep at the interval while leading."""

    def __init__(self, me: str) -> None:
        self.me = me
        self.leading = False
        self._sweep_at = 0.0
        self._absent = vigil.Lasting()

    def step(self, now: float) -> float:
        """Renew or try for the lease; sweep if it is ours and time; return the seconds to wait.

        `now` is any clock that only goes forward: it paces this process and decides nothing else.
        """
        leadership = leader.acquire(self.me)
        if leadership is None:
            if self.leading:
                logger.warning("another supervisor leads now")
            self.leading = False
            return conf.LEASE / 3
        if not self.leading:
            logger.info("leads now (epoch %d)", leadership.epoch)
            self.leading = True
        interval = policies.interval()
        self._sweep_at = min(self._sweep_at, now + interval)  # a shorter interval holds at once
        if now >= self._sweep_at:
            self._sweep_at = now + interval
            done = str(sweep(leadership, absent=self._absent))
            leader.note_sweep(leadership, done)
            if done:
                logger.info(done)
        return max(0.0, min(self._sweep_at - now, conf.LEASE / 3))

    def end(self) -> None:
        """Give the lease back."""
        if self.leading:
            leader.resign(self.me)


def sweep(
    leadership: Leadership,
    chance: Callable[[], float] = random.random,
    absent: vigil.Lasting | None = None,
) -> Sweep:
    """Look at every step and task once, in batches, oldest first; then at the machinery.

    `absent` is what is kept from sweep to sweep: which queues have had no worker, and since when.
    """
    done = Sweep()
    while _recover(leadership, done, chance) >= conf.BATCH:
        pass
    crashpoints.reached("supervisor.mid_sweep", done.retried)
    while (undone := undo_unmended(conf.BATCH, by=leadership.actor)) == conf.BATCH:
        done.undone += undone
    done.undone += undone
    while (woken := wake(conf.BATCH)) == conf.BATCH:
        done.woken += woken
    done.woken += woken
    while (released := let_go()) == conf.BATCH:
        done.released += released
    done.released += released
    open_unasked()
    hold_unserved(presence.unserved(policies.agents()))
    with transaction.atomic():
        late = mark_overdue(conf.BATCH)
        alerts.overdue(late)
        done.overdue = len(late)
    alerts.close_overdue()
    done.operated = operations.advance(leadership, reach=2 * policies.interval())
    operations.forget_drafts()
    incidents.fold(leadership.actor)
    presence.forget_the_dead()
    vigil.look(vigil.Lasting() if absent is None else absent)
    rollups.keep(leadership)
    _ring()
    return done


@transaction.atomic
def _recover(leadership: Leadership, done: Sweep, chance: Callable[[], float]) -> int:
    """Count one batch of failures and decide about each; return the batch's size."""
    failed = lock_failed(conf.BATCH, by=leadership.actor)
    if not failed:
        return 0
    known = Policy.objects.in_bulk({step.agent for step in failed})
    decided = [
        (step, decide(policies.thresholds(known.get(step.agent) or Policy()), failure, chance()))
        for step, failure in _excused(failed)
    ]
    again = [(step, what) for step, what in decided if isinstance(what, Retry)]
    lost = [step for step, what in decided if isinstance(what, GiveUp)]
    unneeded = [step for step, what in decided if isinstance(what, Cancel)]
    hopeless = [step for step, what in decided if isinstance(what, Undo)]
    retry(again, by=leadership.actor)
    let_be(unneeded, by=leadership.actor)
    # what cannot be undone is an error after all; what became of other steps of the task stands
    give_up(lost)
    give_up(undo_for(hopeless, by=leadership.actor))
    finish_failed(failed, by=leadership.actor)
    done.retried += len(again)
    done.given_up += len(lost)
    done.undone += len(hopeless)
    done.let_be += len(unneeded)
    crashpoints.reached("supervisor.before_commit", failed)
    return len(failed)


def _excused(failed: Sequence[Failed]) -> list[tuple[Failed, Failure]]:
    """Tell the gates of silent services; return each failure, excused while its gate is not open."""
    gates = lock_gates({step.agent for step in failed})
    now = database_now()
    silence = Counter(suspected(failed))
    heard = {agent: [Heard(answered=False)] * count for agent, count in silence.items()}
    hear_all(gates, heard, now)
    told = []
    for step in failed:
        gate = gates.get(step.agent)
        failure = step.failure
        if gate and excuses(gate.view, step.at):
            again = max(gate.view.probe_at or now, gate.view.paused_until or now)
            failure = replace(failure, excused_for=max(0.0, again - now))
        told.append((step, failure))
    return told


def _ring() -> None:
    """Ring for whatever is due and nobody is serving: a lost doorbell costs seconds, not an order."""
    before = DatabaseNow() - timedelta(seconds=conf.UNSERVED)
    posted = Submission.objects.filter(refused_at=None, created_at__lt=before)
    ready = Step.objects.filter(process_state=StepState.PENDING, run_after=None)
    told = {queues.of_application(name) for name, _ in status.waiting(conf.UNSERVED)}
    due = {
        queues.SUBMISSION: posted.exists(),
        queues.SCHEDULER: ready.exists(),
        **dict.fromkeys(sorted(told), True),
        queues.PUSH: push.due(),
        queues.ALERTS: notices.due(),
        queues.AUDIT: audit.due(),
    }
    for name, is_due in due.items():
        if is_due:
            queues.try_to_ring(name)
    agents = Policy.objects.order_by("agent").values_list("agent", flat=True)
    try:
        left_lying = queues.waiting([queues.SCHEDULER, *agents])
    except queues.Unreachable:
        return
    for name in left_lying:
        queues.try_to_ring(name)
