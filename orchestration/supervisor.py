"""The supervisor: finds what failed, expired or waits unserved, and asks for recovery (P3, P10, P26).

It knows only the state store. It calls no agent and no workflow: it makes steps pending again, or
sets them to error, and rings doorbells; schedulers and agents carry it out.
"""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from . import alerts, conf, crashpoints, leader, policies, presence, queues
from .leader import Leadership
from .models import Policy, StatusMessage, Step, Submission
from .models.fields import DatabaseNow
from .recovery import GiveUp, Thresholds, decide
from .states import StepState
from .transitions import Failed, give_up, lock_failed, mark_overdue, retry, wake

logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Sweep:
    """What one sweep did."""

    retried: int = 0
    given_up: int = 0
    woken: int = 0
    overdue: int = 0

    def __str__(self) -> str:
        done = ((name.replace("_", " "), count) for name, count in vars(self).items() if count)
        return ", ".join(f"{count} {name}" for name, count in done)


class Watch:
    """One supervisor's duty: hold the lease or wait for it, and sweep at the interval while leading."""

    def __init__(self, me: str) -> None:
        self.me = me
        self.leading = False
        self._sweep_at = 0.0

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
            if done := str(sweep(leadership)):
                logger.info(done)
        return max(0.0, min(self._sweep_at - now, conf.LEASE / 3))

    def end(self) -> None:
        """Give the lease back."""
        if self.leading:
            leader.resign(self.me)


def sweep(leadership: Leadership, chance: Callable[[], float] = random.random) -> Sweep:
    """Look at every step and task once, in batches, oldest first."""
    done = Sweep()
    while _recover(leadership, done, chance) >= conf.BATCH:
        pass
    crashpoints.reached("supervisor.mid_sweep", done.retried)
    while (woken := wake(conf.BATCH)) == conf.BATCH:
        done.woken += woken
    done.woken += woken
    with transaction.atomic():
        late = mark_overdue(conf.BATCH)
        alerts.overdue(late)
        done.overdue = len(late)
    alerts.close_overdue()
    presence.forget_the_dead()
    _ring()
    return done


@transaction.atomic
def _recover(leadership: Leadership, done: Sweep, chance: Callable[[], float]) -> int:
    """Count one batch of failures and decide about each; return the batch's size."""
    failed = lock_failed(conf.BATCH)
    policies = Policy.objects.in_bulk({step.agent for step in failed})
    again: list[tuple[Failed, int, float]] = []
    lost: list[Failed] = []
    for step in failed:
        decision = decide(_thresholds(policies.get(step.agent)), step.failure_count, chance())
        if isinstance(decision, GiveUp):
            lost.append(step)
        else:
            again.append((step, decision.failure_count, decision.wait))
    retry(again, by=leadership.actor)
    give_up(lost, by=leadership.actor)
    done.retried += len(again)
    done.given_up += len(lost)
    crashpoints.reached("supervisor.before_commit", failed)
    return len(failed)


def _thresholds(policy: Policy | None) -> Thresholds:
    policy = policy or Policy()
    return Thresholds(
        failure_threshold=policy.failure_threshold,
        backoff=policy.backoff,
        backoff_cap=policy.backoff_cap,
    )


def _ring() -> None:
    """Ring for whatever is due and nobody is serving: a lost doorbell costs seconds, not an order."""
    before = DatabaseNow() - timedelta(seconds=conf.UNSERVED)
    if Submission.objects.filter(refused_at=None, created_at__lt=before).exists():
        queues.try_to_ring(queues.SUBMISSION)
    if Step.objects.filter(process_state=StepState.PENDING, run_after=None).exists():
        queues.try_to_ring(queues.SCHEDULER)
    waiting = StatusMessage.objects.filter(refused_at=None, created_at__lt=before)
    for application in waiting.values_list("reply_to", flat=True).distinct():
        queues.try_to_ring(queues.STATUS_PREFIX + application)
    agents = Policy.objects.order_by("agent").values_list("agent", flat=True)
    try:
        left_lying = queues.waiting([queues.SCHEDULER, *agents])
    except queues.Unreachable:
        return
    for name in left_lying:
        queues.try_to_ring(name)
