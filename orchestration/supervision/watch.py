"""Hold a lease or wait for it, and sweep at the interval while leading."""

import logging
from collections.abc import Callable

from django.db import Error

from .. import conf, policies
from ..alerting import alerts
from ..cluster import leader_election
from ..cluster.leader_election import Jump, Leadership
from ..cluster.leader_memory import Memory
from ..database import sql
from ..database.clock_jumps import ClockWatch
from ..transitions.clock_jump import allow_for_jump
from . import conditions
from .duties import Progress

logger = logging.getLogger(__name__)

Sweeping = Callable[[Leadership, Memory, Progress], object]


class Watch:
    """The loop of one process: it holds the lease or waits for it, and sweeps while it leads."""

    def __init__(self, me: str, *, name: str, sweep: Sweeping) -> None:
        self.me = me
        self.name = name
        self.leading = False
        self._sweep = sweep
        self._sweep_at = 0.0
        self._memory = Memory()
        self._clock = ClockWatch()
        self._reported: float | None = None  # the sum of handled jumps when one was last reported

    def step(self, now: float) -> float:
        """Renew or request the lease; sweep if leading and due; return the seconds to wait.

        `now` is on any monotonic clock: it only paces this process.
        """
        leadership = leader_election.acquire(self.me, self._clock, name=self.name)
        if leadership is None:
            if self.leading:
                logger.warning("another %s leads now", self.name)
            self.leading = False
            return conf.LEASE_S / 3
        if not self.leading:
            logger.info("leads now (epoch %d)", leadership.epoch)
            self.leading = True
            self._memory = Memory()  # observations of an earlier leadership are outdated
        if self._clock.jump:
            return self._allow_for_the_jump(leadership)
        interval = policies.interval()
        self._sweep_at = min(self._sweep_at, now + interval)  # a shorter interval applies at once
        if now >= self._sweep_at:
            self._sweep_at = now + interval
            self._sweep_now(leadership)
        return max(0.0, min(self._sweep_at - now, conf.LEASE_S / 3))

    def once(self) -> bool:
        """Sweep once, for a schedule that starts a process for each sweep; return whether it led.

        The memory comes from the previous sweep, and is saved for the next one. A jump of the clock
        between the two is detected if both ran since this machine was booted.
        """
        leadership = leader_election.acquire(self.me, name=self.name)
        if leadership is None:
            return False
        self.leading = True
        self._memory = Memory(leadership.memory)
        self._clock = ClockWatch.load(leadership.memory.get("clock"))
        leadership = leader_election.acquire(self.me, self._clock, name=self.name) or leadership
        if self._clock.jump:
            self._allow_for_the_jump(leadership)
            leadership = leader_election.acquire(self.me, self._clock, name=self.name) or leadership
        if not self._clock.jump:  # otherwise a supervisor has yet to handle the jump
            self._sweep_now(leadership)
        memory = {**self._memory.dump(), "clock": self._clock.dump()}
        leader_election.leave(leadership, memory, awaited=policies.patience())
        self.leading = False
        return True

    def _sweep_now(self, leadership: Leadership) -> None:
        with leader_election.Renewal(leadership) as renewal:
            done = str(self._sweep(leadership, self._memory, renewal.progress))
        if done:
            logger.info(done)

    def _allow_for_the_jump(self, leadership: Leadership) -> float:
        """Raise an alert once; then move the times that a jump of the database's clock made wrong.

        Only the supervisor does so; a housekeeper waits, as its own actions might be wrong meanwhile.
        Returns the seconds to wait.
        """
        if self.name != leader_election.SUPERVISOR:
            return conf.LEASE_S / 3
        jump, handled = self._clock.jump, self._clock.handled
        if self._reported != handled:
            logger.critical("the database's clock jumped by %+.0f s", jump)
            alerts.raise_all([conditions.jumped(Jump(seconds=jump, ago=0.0))])
            self._reported = handled
        allow_for_jump(jump, handled=handled, since=self._clock.since, by=leadership.actor)
        return 0.0

    def end(self) -> None:
        """Release the lease; without the database it expires."""
        if self.leading:
            try:
                leader_election.resign(self.me, name=self.name)
            except Error as error:
                logger.warning("the lease is not released: %s", sql.first_line(error))
