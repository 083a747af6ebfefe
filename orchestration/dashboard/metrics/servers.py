"""How Postgres and Redis are, as far as the engine can see: their own exporters know more."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from ...messaging import queues, server
from ...queries import database
from .families import counter, gauge


def metrics(*, redis: bool) -> Iterator[Metric]:
    """Yield figures of the database, and of Redis if it answers."""
    yield from _postgres(database.look())
    if redis:
        try:
            found = server.info()
        except queues.Unreachable:  # it went away since, or its user may not ask
            return
        yield from _redis(found)


def _postgres(found: database.Database) -> Iterator[Metric]:
    yield gauge("postgres_connections", "Of all databases", of=[([], found.connections)])
    yield gauge("postgres_connections_max", "As many are allowed", of=[([], found.most)])
    yield gauge("postgres_size_bytes", "Of this database", of=[([], found.size)])
    yield gauge(
        "postgres_oldest_transaction_seconds", "Age of the oldest open one that its role can see",
        of=[([], found.oldest)],
    )  # fmt: skip
    yield gauge("postgres_lock_waits", "Sessions that wait for a lock", of=[([], found.waiting)])
    yield counter(
        "postgres_transactions", "Of this database", ["result"],
        of=[(["commit"], found.commits), (["rollback"], found.rollbacks)],
    )  # fmt: skip
    yield counter("postgres_deadlocks", "Of this database", of=[([], found.deadlocks)])
    yield counter(
        "postgres_blocks", "That were asked for, by where they were", ["found"],
        of=[(["memory"], found.hits), (["disk"], found.reads)],
    )  # fmt: skip


def _redis(found: server.Info) -> Iterator[Metric]:
    yield gauge("redis_memory_bytes", "In use", of=[([], found["used_memory"])])
    yield gauge(
        "redis_memory_max_bytes", "maxmemory; 0: no limit", of=[([], found.get("maxmemory", 0))]
    )
    yield gauge("redis_clients", "Connected", of=[([], found["connected_clients"])])
    yield counter("redis_commands", "Processed", of=[([], found["total_commands_processed"])])
    yield counter("redis_evicted_keys", "For lack of memory", of=[([], found["evicted_keys"])])
    yield counter(
        "redis_rejected_connections", "For too many clients",
        of=[([], found["rejected_connections"])],
    )  # fmt: skip
