"""The supervisor: of several, one leads, and sweeps at the interval (P3, P12)."""

import logging

from django.db import Error

from . import conf, leader, policies, sql, vigil
from .clock_watch import ClockWatch
from .leader import Leadership
from .memory import Memory
from .sweep import sweep
from .transitions.clock_jump import allow_for_jump

logger = logging.getLogger(__name__)


class Watch:
    """One supervisor's duty: hold the lease or wait for it, and sweep at the interval while leading."""

    def __init__(self, me: str) -> None:
        self.me = me
        self.leading = False
        self._sweep_at = 0.0
        self._memory = Memory()
        self._clock = ClockWatch()
        self._reported: float | None = None  # the sum of jumps before the one reported last

    def step(self, now: float) -> float:
        """Renew or try for the lease; sweep if it is ours and time; return the seconds to wait.

        `now` is any clock that only goes forward: it paces this process and decides nothing else.
        """
        leadership = leader.acquire(self.me, self._clock)
        if leadership is None:
            if self.leading:
                logger.warning("another supervisor leads now")
            self.leading = False
            return conf.LEASE / 3
        if not self.leading:
            logger.info("leads now (epoch %d)", leadership.epoch)
            self.leading = True
            self._memory = Memory()  # what it saw in an earlier reign is past
        if self._clock.jump:
            self._allow_for_the_jump(leadership)
            return 0.0
        interval = policies.interval()
        self._sweep_at = min(self._sweep_at, now + interval)  # a shorter interval holds at once
        if now >= self._sweep_at:
            self._sweep_at = now + interval
            with leader.Renewal(leadership) as renewal:
                done = str(sweep(leadership, memory=self._memory, progress=renewal.progress))
            if done:
                logger.info(done)
        return max(0.0, min(self._sweep_at - now, conf.LEASE / 3))

    def _allow_for_the_jump(self, leadership: Leadership) -> None:
        """Alert, once; then move what a jump of the database's clock would end too early or too late."""
        jump, handled = self._clock.jump, self._clock.handled
        if self._reported != handled:
            logger.critical("the database's clock jumped by %+.0f s", jump)
            vigil.report_jump(jump)
            self._reported = handled
        allow_for_jump(jump, handled=handled, since=self._clock.since, by=leadership.actor)

    def end(self) -> None:
        """Give the lease back; without the database it runs out."""
        if self.leading:
            try:
                leader.resign(self.me)
            except Error as error:
                logger.warning("the lease is not given back: %s", sql.first_line(error))
