"""One process's watch: it holds a lease, or waits for it, and sweeps at the interval while it leads."""

import logging
from collections.abc import Callable

from django.db import Error

from .. import conf, leader, policies, sql, troubles
from ..clock_watch import ClockWatch
from ..leader import Leadership
from ..transitions.clock_jump import allow_for_jump
from .duties import Progress
from .memory import Memory

logger = logging.getLogger(__name__)

Sweep = Callable[[Leadership, Memory, Progress], object]


class Watch:
    """One process's duty: hold the lease or wait for it, and sweep at the interval while leading."""

    def __init__(self, me: str, *, name: str, sweep: Sweep) -> None:
        self.me = me
        self.name = name
        self.leading = False
        self._sweep = sweep
        self._sweep_at = 0.0
        self._memory = Memory()
        self._clock = ClockWatch()
        self._reported: float | None = None  # the sum of jumps before the one reported last

    def step(self, now: float) -> float:
        """Renew or try for the lease; sweep if it is ours and time; return the seconds to wait.

        `now` is any clock that only goes forward: it paces this process and decides nothing else.
        """
        leadership = leader.acquire(self.me, self._clock, name=self.name)
        if leadership is None:
            if self.leading:
                logger.warning("another %s leads now", self.name)
            self.leading = False
            return conf.LEASE / 3
        if not self.leading:
            logger.info("leads now (epoch %d)", leadership.epoch)
            self.leading = True
            self._memory = Memory()  # what it saw in an earlier reign is past
        if self._clock.jump:
            return self._allow_for_the_jump(leadership)
        interval = policies.interval()
        self._sweep_at = min(self._sweep_at, now + interval)  # a shorter interval holds at once
        if now >= self._sweep_at:
            self._sweep_at = now + interval
            self._sweep_now(leadership)
        return max(0.0, min(self._sweep_at - now, conf.LEASE / 3))

    def once(self) -> bool:
        """Sweep once, for a schedule that starts a process for each sweep; return whether it led.

        What a leader keeps in mind comes from the sweep before, and goes to the next one. A jump of the
        clock between the two is noticed if both ran since this machine was started.
        """
        leadership = leader.acquire(self.me, name=self.name)
        if leadership is None:
            return False
        self.leading = True
        self._memory = Memory.load(leadership.memory)
        self._clock = ClockWatch.load(leadership.memory.get("clock"))
        leadership = leader.acquire(self.me, self._clock, name=self.name) or leadership
        if self._clock.jump:
            self._allow_for_the_jump(leadership)
            leadership = leader.acquire(self.me, self._clock, name=self.name) or leadership
        if not self._clock.jump:  # else a supervisor has yet to deal with it
            self._sweep_now(leadership)
        left = {**self._memory.dump(), "clock": self._clock.dump()}
        leader.leave(leadership, left, awaited=policies.patience())
        self.leading = False
        return True

    def _sweep_now(self, leadership: Leadership) -> None:
        with leader.Renewal(leadership) as renewal:
            done = str(self._sweep(leadership, self._memory, renewal.progress))
        if done:
            logger.info(done)

    def _allow_for_the_jump(self, leadership: Leadership) -> float:
        """Alert, once; then move what a jump of the database's clock would end too early or too late.

        That is the supervisor's; a housekeeper waits for it, as what it did now might be wrong. Returns
        the seconds to wait.
        """
        if self.name != leader.SUPERVISOR:
            return conf.LEASE / 3
        jump, handled = self._clock.jump, self._clock.handled
        if self._reported != handled:
            logger.critical("the database's clock jumped by %+.0f s", jump)
            troubles.raise_jump(jump)
            self._reported = handled
        allow_for_jump(jump, handled=handled, since=self._clock.since, by=leadership.actor)
        return 0.0

    def end(self) -> None:
        """Give the lease back; without the database it runs out."""
        if self.leading:
            try:
                leader.resign(self.me, name=self.name)
            except Error as error:
                logger.warning("the lease is not given back: %s", sql.first_line(error))
