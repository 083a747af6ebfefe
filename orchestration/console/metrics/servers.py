"""How Postgres and Redis are, as far as the engine can see: their own exporters know more."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from ...messaging import redis_breaker, server
from ..queries import database
from .families import counter, gauge


def metrics(*, redis: bool) -> Iterator[Metric]:
    """Yield figures of the database, and of Redis if it answers."""
    yield from _postgres(database.look())
    if redis:
        try:
            info = server.info()
        except redis_breaker.Unreachable:  # it went away since, or its user may not ask
            return
        yield from _redis(info)


def _postgres(facts: database.Database) -> Iterator[Metric]:
    yield gauge("postgres_connections", "Of all databases", of=[([], facts.connections)])
    yield gauge("postgres_connections_max", "As many are allowed", of=[([], facts.most)])
    yield gauge("postgres_size_bytes", "Of this database", of=[([], facts.size)])
    yield gauge(
        "postgres_oldest_transaction_seconds", "Age of the oldest open one that its role can see",
        of=[([], facts.oldest)],
    )  # fmt: skip
    yield gauge("postgres_lock_waits", "Sessions that wait for a lock", of=[([], facts.waiting)])
    yield counter(
        "postgres_transactions", "Of this database", ["result"],
        of=[(["commit"], facts.commits), (["rollback"], facts.rollbacks)],
    )  # fmt: skip
    yield counter("postgres_deadlocks", "Of this database", of=[([], facts.deadlocks)])
    yield counter(
        "postgres_blocks", "That were asked for, by where they were", ["found"],
        of=[(["memory"], facts.hits), (["disk"], facts.reads)],
    )  # fmt: skip


def _redis(info: server.Info) -> Iterator[Metric]:
    yield gauge("redis_memory_bytes", "In use", of=[([], info["used_memory"])])
    yield gauge(
        "redis_memory_max_bytes", "maxmemory; 0: no limit", of=[([], info.get("maxmemory", 0))]
    )
    yield gauge("redis_clients", "Connected", of=[([], info["connected_clients"])])
    yield counter("redis_commands", "Processed", of=[([], info["total_commands_processed"])])
    yield counter("redis_evicted_keys", "For lack of memory", of=[([], info["evicted_keys"])])
    yield counter(
        "redis_rejected_connections", "For too many clients",
        of=[([], info["rejected_connections"])],
    )  # fmt: skip
