"""The other workers of an agent: this one compares its calls with theirs, by reports over Redis (P16)."""

import logging
from collections.abc import Sequence

from .. import conf
from ..database import clock
from ..decisions.recovery import INSTANCE_SICK
from ..messaging.agent_inbox import REPORT_LIFE, AgentInbox
from ..messaging.messages import Reply
from ..states import Health
from .errors import LONGEST_MESSAGE
from .finished_request import FinishedRequest
from .outliers import SLICE, Participation, Report, anyone_takes_part

logger = logging.getLogger(__name__)


class Siblings:
    """What this worker knows of the agent's others, and whether it takes part beside them."""

    def __init__(self, inbox: AgentInbox, instance: str) -> None:
        self._inbox = inbox
        self._instance = instance
        self.part = Participation()
        self._ahead = clock.ahead()
        self._reports: list[Report] = []
        self._exchanged_at = 0.0
        self._unserved_looks = 0  # consecutive looks at which messages waited

    def room(self, free: int, under_way: int) -> int:
        """Return how many requests this worker may take with `free` free slots."""
        now = self._now()  # which may replace `part`
        return self.part.room(free, under_way, now)

    def _now(self) -> float:
        """Return the time; take part anew if the clock was set: earlier times are not comparable."""
        if clock.was_set(self._ahead):
            self.part, self._exchanged_at = Participation(), 0.0
        self._ahead = clock.ahead()
        return clock.now()

    async def compare(self, over: Sequence[FinishedRequest]) -> None:
        """Count the results of calls, and step back if other workers' calls succeed."""
        now = self._now()
        for call in over:
            if call.began is not None and call.good is not None:
                self.part.note(call.began, now, good=call.good)
        if now - self._exchanged_at >= SLICE:
            await self._exchange(now)
        failed = any(call.good is False for call in over)
        if failed and not anyone_takes_part(self._reports, now, 2 * conf.INBOX_IDLE_S):
            # another worker shows whether the cause is this worker or the service, and serves repeats
            await self._inbox.call_another(even_if_empty=True)
        if self.part.compare(self._reports, now):
            logger.error("%s steps back: its calls fail, its siblings' do not", self._instance)
            await self._exchange(now)

    async def _exchange(self, now: float) -> int:
        """Exchange reports with the agent's other workers; return how many messages wait."""
        self._exchanged_at = now
        raw, waiting = await self._inbox.exchange(self.part.report(now).dump())
        parsed = {worker: Report.parse(dumped) for worker, dumped in raw.items()}
        self._reports = [report for report in parsed.values() if report]
        if gone := [
            name
            for name, report in parsed.items()
            if not (report and report.is_recent(now, REPORT_LIFE))
        ]:
            await self._inbox.forget_reports(gone)
        return waiting

    async def look(self) -> None:
        """Take part again if no other worker does and messages wait."""
        now = clock.now()
        waiting = await self._exchange(now)
        alone = waiting and not anyone_takes_part(self._reports, now, conf.WORKER_DEAD_AFTER_S)
        self._unserved_looks = self._unserved_looks + 1 if alone else 0
        if self._unserved_looks > 1:  # at a first look, a worker may have been about to take them
            logger.warning("%s takes part again: no other worker does", self._instance)
            self.part.take_part(now)

    def attributed(self, call: FinishedRequest, reply: Reply) -> Reply:
        """Return a reply; a failure while this worker has stepped back is blamed on the worker."""
        if self.part.back_since is None or call.good is not False:
            return reply
        message = f"{reply.code}: {reply.message}"[:LONGEST_MESSAGE]
        return reply.altered(code=INSTANCE_SICK, message=message, health=Health.NOTHING.value)
