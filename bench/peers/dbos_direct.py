"""Loads DBOS in its fastest way: workflows started in the process that runs them.

`python -m bench.peers.dbos_direct`: without queue, client or polling.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

from dbos import DBOS, SetWorkflowID  # type: ignore[import-not-found]

from bench.client import Answer, answer, pause
from bench.peers.dbos_app import CONCURRENCY, launch, run, three_calls


async def one(reference: str) -> None:
    """Run one workflow durably: by its explicit id it runs once, even if started again."""
    with SetWorkflowID(reference):
        handle = await DBOS.start_workflow_async(three_calls, reference)
    await handle.get_result()


async def backlog(run: str, count: int) -> Answer:
    """Run `count` workflows, at most CONCURRENCY at once."""
    gate = asyncio.Semaphore(CONCURRENCY)

    async def in_turn(reference: str) -> None:
        async with gate:
            await one(reference)

    await asyncio.gather(*(in_turn(f"{run}-{number}") for number in range(count)))
    return {}


async def idle(run: str, count: int) -> Answer:
    """Run one workflow at a time; return latencies in ms."""
    latencies = []
    for number in range(count):
        start = time.monotonic()
        await one(f"{run}-{number}")
        latencies.append((time.monotonic() - start) * 1000)
        await asyncio.sleep(pause())
    return {"latencies": latencies}


async def paced(run: str, count: int, rate: float) -> Answer:
    """Run `rate` workflows per second; return latencies in ms, from the time each was due."""
    begin = time.monotonic() + 0.05

    async def at(number: int) -> float:
        due = begin + number / rate
        await asyncio.sleep(due - time.monotonic())
        await one(f"{run}-{number}")
        return (time.monotonic() - due) * 1000

    return {"latencies": await asyncio.gather(*(at(number) for number in range(count)))}


async def main() -> None:
    """Execute commands from standard input until it ends."""
    await launch()
    commands: dict[str, Callable[..., Awaitable[Answer]]] = {
        "backlog": backlog,
        "idle": idle,
        "paced": paced,
    }
    answer({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        answer(await commands[command.pop("do")](**command))


if __name__ == "__main__":
    run(main())
