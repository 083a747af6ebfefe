"""Three jobs in a row on PgQueuer, each making one call and enqueuing the next.

`python -m bench.peers.pgqueuer_app` creates the tables; with `each` or `batched` it is a worker.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import aiohttp
import asyncpg  # type: ignore[import-not-found]
import uvloop  # type: ignore[import-not-found]
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]
from redis.asyncio import Redis

URL = os.environ["SANDBOX_URL"] + "/bench/calls"
DATABASE = os.environ["PEER_DATABASE_URL"]
STEPS = ("first", "second", "third")
ENDED = "bench:pgqueuer:ended"  # a list of references, by which single tasks are observed
GATHER = 0.005  # seconds for which follow-ups are collected
BATCH = 50  # jobs taken at once
CONCURRENCY = 300  # jobs that one process runs at once
CONNECTIONS = 8  # of one process


class Follow:
    """Enqueues the next jobs, each by itself or those of some milliseconds together."""

    def __init__(self, queries: Queries, *, batched: bool) -> None:
        self.queries, self.batched = queries, batched
        self._gathered: list[tuple[str, bytes]] = []
        self._written: asyncio.Future[None] | None = None

    async def enqueue(self, step: str, payload: bytes) -> None:
        """Return once the job is durable: until then its predecessor is not done."""
        if not self.batched:
            await self.queries.enqueue(step, payload)
            return
        self._gathered.append((step, payload))
        if self._written is None:
            self._written = asyncio.ensure_future(self._write())
        await asyncio.shield(self._written)

    async def _write(self) -> None:
        await asyncio.sleep(GATHER)
        jobs, self._gathered, self._written = self._gathered, [], None
        steps, payloads = zip(*jobs, strict=True)
        await self.queries.enqueue(list(steps), list(payloads), [0] * len(jobs))


class Ends:
    """Pushes the references of ended tasks to a list, those of some milliseconds together."""

    def __init__(self) -> None:
        self.redis = Redis(unix_socket_path=os.environ["REDIS_SOCKET"])
        self._gathered: list[bytes] = []
        self._pushing: set[asyncio.Task[None]] = set()

    def push(self, reference: bytes) -> None:
        """Push soon."""
        self._gathered.append(reference)
        if len(self._gathered) == 1:
            task = asyncio.ensure_future(self._push())
            self._pushing.add(task)
            task.add_done_callback(self._pushing.discard)

    async def _push(self) -> None:
        await asyncio.sleep(GATHER)
        references, self._gathered = self._gathered, []
        await self.redis.rpush(ENDED, *references)  # type: ignore[misc]


async def work(*, batched: bool) -> None:
    """Serve the queue until SIGTERM."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
    )
    pool = await asyncpg.create_pool(DATABASE, min_size=CONNECTIONS, max_size=CONNECTIONS)
    queuer = PgQueuer.from_asyncpg_pool(pool)
    follow, ends = Follow(Queries(queuer.connection), batched=batched), Ends()

    def register(number: int, step: str) -> None:
        @queuer.entrypoint(step)  # type: ignore[untyped-decorator]
        async def run(job: Any) -> None:
            reference = job.payload.decode()
            async with session.post(
                URL, json={"order": reference}, headers={"Idempotency-Key": f"{reference}:{number}"}
            ) as response:
                answer = await response.json()
                if response.status != 201:
                    raise RuntimeError(str(answer))
            if number < len(STEPS):
                await follow.enqueue(STEPS[number], job.payload)
            else:
                ends.push(job.payload)

    for number, step in enumerate(STEPS, 1):
        register(number, step)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queuer.shutdown.set)
    await queuer.run(
        dequeue_timeout=timedelta(seconds=1), batch_size=BATCH, max_concurrent_tasks=CONCURRENCY
    )


async def prepare() -> None:
    """Create the tables, logged ones."""
    connection = await asyncpg.connect(DATABASE)
    queries = Queries.from_asyncpg_connection(connection)
    if not await queries.has_table("pgqueuer"):
        await queries.install()
    await connection.close()


def main(arguments: Sequence[str]) -> None:
    """Prepare, or work."""
    uvloop.run(work(batched="batched" in arguments) if arguments else prepare())


if __name__ == "__main__":
    main(sys.argv[1:])
