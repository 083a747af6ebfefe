"""Expire the attempts of dead agents' workers at once: their deadlines may be far off (P10)."""

from datetime import timedelta
from typing import Any

from .. import conf
from ..cluster import heartbeat
from ..cluster.debounce import Debounce
from ..cluster.duty import NOW, Duty, Sweep
from ..messaging import queues, redis_breaker
from ..transitions.lost_attempts import expire_lost

# Seconds for which this process must have observed the silence itself
LOOKED = conf.WORKER_DEAD_AFTER_S / 2


class Silence(Debounce):
    """Silent workers. Not dumped: between two scheduled sweeps the database may have been away."""

    def dump(self) -> dict[str, Any]:
        """Return nothing."""
        return {}


def expire(sweep: Sweep) -> None:
    """Expire the attempts of dead workers.

    A worker is dead if it has been silent while this process watched: while the database is
    away, no worker can report.
    """
    # by their last reports: a silence that began after another report is another one
    seen = {
        f"{worker.instance} {worker.seen_at.isoformat()}": worker
        for worker in heartbeat.silent(conf.WORKER_DEAD_AFTER_S - LOOKED)
    }
    for silence in sorted(sweep.memory.of("silent", Silence).persisting(seen, LOOKED)):
        worker = seen[silence]
        try:
            held = queues.held_by(worker.instance)
        except redis_breaker.Unreachable:
            return
        # a worker that lost only the database keeps taking requests: later ones are not lost
        expire_lost(held, before=worker.seen_at + timedelta(seconds=conf.HEARTBEAT_INTERVAL_S))


EXPIRE_LOST_ATTEMPTS = Duty(
    name="expire lost attempts",
    run=expire,
    # workers that may be dead
    due=f"""EXISTS (SELECT FROM orchestration_worker
        WHERE seen_at < {NOW} - interval '{conf.WORKER_DEAD_AFTER_S - LOOKED} seconds')""",
)
