"""Loads PgQueuer: `python -m bench.peers.pgqueuer_client`."""

import asyncio
import os
from collections.abc import Iterable, Sequence

import asyncpg  # type: ignore[import-not-found]
import redis
import uvloop  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

from bench.client import Client, serve
from bench.peers.pgqueuer_app import DATABASE, ENDED, STEPS


class Jobs:
    """Enqueues first jobs in batches; the last job of each task pushes its reference to a list."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.queries = Queries.from_asyncpg_connection(self.runner.run(asyncpg.connect(DATABASE)))
        self.ends = redis.Redis(unix_socket_path=os.environ["REDIS_SOCKET"])

    def submit(self, references: Sequence[str]) -> None:
        """Enqueue the first jobs in one statement."""
        payloads = [reference.encode() for reference in references]
        count = len(payloads)
        self.runner.run(self.queries.enqueue([STEPS[0]] * count, payloads, [0] * count))

    def finished(self, references: Iterable[str]) -> set[str]:
        """Pop references from the list."""
        ended = self.ends.lpop(ENDED, 1000) or []
        return {reference.decode() for reference in ended}.intersection(references)  # type: ignore[union-attr]

    def settled(self, run: str, count: int) -> bool:
        """Check the list's length; delete the list when it is complete."""
        _ = run
        if self.ends.llen(ENDED) < count:  # type: ignore[operator]
            return False
        self.ends.delete(ENDED)
        return True


if __name__ == "__main__":
    serve(Client(Jobs()))
