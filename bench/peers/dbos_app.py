"""The three calls as a durable workflow of DBOS Transact: async workflow, async steps.

`python -m bench.peers.dbos_app` creates the tables and the queue; with `worker` it serves the queue.
"""

import asyncio
import os
import signal
import sys

import aiohttp
import uvloop  # type: ignore[import-not-found]
from dbos import DBOS, DBOSConfig  # type: ignore[import-not-found]

QUEUE = "bench"
WORKFLOW = "three_calls"
VERSION = "bench"
POLLING = 0.01  # seconds between polls of the queue; the default of 1 s is slow at idle
CONCURRENCY = 100  # workflows that one process runs at once
URL = os.environ["SANDBOX_URL"] + "/bench/calls"

_sessions: list[aiohttp.ClientSession] = []


@DBOS.step()  # type: ignore[untyped-decorator]
async def call(order: str, number: int) -> str:
    """Make one remote call on a persistent connection."""
    async with _sessions[0].post(
        URL, json={"order": order}, headers={"Idempotency-Key": f"{order}:{number}"}
    ) as response:
        answer = await response.json()
        if response.status != 201:
            raise RuntimeError(str(answer))
        return str(answer["id"])


@DBOS.workflow(name=WORKFLOW)  # type: ignore[untyped-decorator]
async def three_calls(order: str) -> None:
    """Make three calls, one after the other."""
    await call(order, 1)
    await call(order, 2)
    await call(order, 3)


@DBOS.workflow(name="bank")  # type: ignore[untyped-decorator]
async def wait_for_bank(order: str) -> None:
    """Make a call, wait for what the bank says of it, and make another."""
    await call(order, 1)
    if await DBOS.recv_async("bank", timeout_seconds=600) is None:
        raise RuntimeError("no message has come from the bank")
    await call(order, 2)


@DBOS.workflow(name="parcel")  # type: ignore[untyped-decorator]
async def parcel(order: str, warehouse: int) -> str:
    """Send one parcel, as a child."""
    return str(await call(order, warehouse))


@DBOS.workflow(name="parcels")  # type: ignore[untyped-decorator]
async def parcels(order: str) -> None:
    """Send three parcels side by side, wait for all, and make another call."""
    children = [await DBOS.start_workflow_async(parcel, order, number) for number in (1, 2, 3)]
    for child in children:
        await child.get_result()
    await call(order, 4)


def config() -> DBOSConfig:
    """Return the configuration; bench/README.md gives the reasons."""
    return {
        "name": "bench",
        "system_database_url": os.environ["PEER_DATABASE_URL"],
        "application_version": VERSION,
        "executor_id": os.environ.get("EXECUTOR", "0"),
        "log_level": "WARNING",
        "sys_db_pool_size": 20,  # more than threads, so that none waits for a connection
        "max_executor_threads": 16,  # which write to the database: see README.md
        "db_engine_kwargs": {"pool_pre_ping": False},  # saves a question per transaction
    }


async def launch() -> None:
    """Start DBOS on this event loop, with one HTTP session for all calls."""
    _sessions.append(
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
        )
    )
    DBOS(config=config())
    DBOS.launch()


async def prepare() -> None:
    """Create the tables and the queue."""
    await launch()
    await DBOS.register_queue_async(
        QUEUE, worker_concurrency=CONCURRENCY, polling_interval_sec=POLLING
    )


async def work() -> None:
    """Serve the queue until SIGTERM."""
    await launch()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


def run(main: "asyncio._CoroutineLike[None]") -> None:
    """Run a coroutine to its end, then exit without waiting for DBOS's idle threads."""
    uvloop.run(main)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    run(work() if "worker" in sys.argv else prepare())
