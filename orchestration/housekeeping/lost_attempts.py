"""Expire the attempts of dead agents' workers at once: their deadlines may be far off (P10)."""

from datetime import timedelta

from .. import conf
from ..cluster import heartbeat
from ..cluster.debounce import Debounce
from ..messaging import queues
from ..transitions.lost_attempts import expire_lost

# seconds for which this process must have observed the silence itself
LOOKED = conf.WORKER_DEAD_AFTER_S / 2


def expire(silent: Debounce) -> None:
    """Expire the attempts of dead workers.

    A worker is dead if it has been silent while this process watched (`silent`): while the database is
    away, no worker can report.
    """
    seen = {
        one.instance: one.seen_at for one in heartbeat.silent(conf.WORKER_DEAD_AFTER_S - LOOKED)
    }
    for worker in sorted(silent.of(seen, LOOKED)):
        try:
            held = queues.held_by(worker)
        except queues.Unreachable:
            return
        # a worker that lost only the database keeps taking requests: later ones are not lost
        expire_lost(held, before=seen[worker] + timedelta(seconds=conf.HEARTBEAT_INTERVAL_S))
