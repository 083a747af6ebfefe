"""Attempts that died with an agent's worker expire at once: their deadlines may be far off (P10)."""

from datetime import timedelta

from .. import conf, presence, queues
from ..lasting import Lasting
from ..transitions.lost import expire_lost

LOOKED = conf.ALIVE / 2  # seconds for which this process must have seen a worker silent


def expire(silent: Lasting) -> None:
    """Have the attempts of dead workers expire.

    A worker is dead if it was not seen for a while, as far as this process has looked (`silent`): a
    database that was away kept all of them from reporting.
    """
    seen = {one.instance: one.seen_at for one in presence.silent(conf.ALIVE - LOOKED)}
    for worker in sorted(silent.of(seen, LOOKED)):
        try:
            held = queues.held_by(worker)
        except queues.Unreachable:
            return
        # one that is cut off from the database alone takes more: that is not lost
        expire_lost(held, before=seen[worker] + timedelta(seconds=conf.HEARTBEAT))
