"""What our own processes lost or kept unread: no service is blamed for it, nor is it waited for (P10)."""

from datetime import datetime, timedelta

from . import conf, presence, queues
from .lasting import Lasting
from .transitions.lost import expire_lost

LOOKED = conf.ALIVE / 2  # seconds for which this process must have seen a worker silent


class Losses:
    """What a leader knows of them from sweep to sweep.

    `at` is when Redis was last away, lost what it held, or kept replies unread, on the database's
    clock: what was dispatched earlier may be lost or unread for that. `silent_since` is by when
    attempts without a reply must have ended to be given up: a while ago, where theirs may be among
    those that lie unread or cannot be sent.
    """

    def __init__(self) -> None:
        self.at: datetime | None = None
        self.silent_since: datetime | None = None
        self._looked = False
        self._unread: bytes | None = None  # the oldest message in the schedulers' inbox
        self._silent = Lasting()

    def look(self, now: datetime) -> None:
        """Look at Redis once, `now` by the database's clock."""
        try:
            unread, kept = queues.oldest(queues.SCHEDULER)
        except queues.Unreachable:
            kept, waits = False, True
        else:
            # the same since the last look: no scheduler takes what is there
            waits = unread is not None and unread == self._unread
            self._unread = unread
        if waits or not kept or not self._looked:  # nor is known what was before the first look
            self.at = now
        self._looked = True
        self.silent_since = now - timedelta(seconds=conf.UNREAD) if waits else now

    def find(self) -> None:
        """Have the attempts expire that died with an agent's worker: their deadlines may be far off.

        A worker is dead if it was not seen for a while, as far as this process has looked: a
        database that was away kept all of them from reporting.
        """
        seen = {one.instance: one.seen_at for one in presence.silent(conf.ALIVE - LOOKED)}
        for worker in sorted(self._silent.of(seen, LOOKED)):
            try:
                held = queues.held_by(worker)
            except queues.Unreachable:
                return
            # one that is cut off from the database alone takes more: that is not lost
            expire_lost(held, before=seen[worker] + timedelta(seconds=conf.HEARTBEAT))
