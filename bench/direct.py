"""Loads what runs in the client's own event loop: no queue, no polling.

Like `bench.client`, it imports only the standard library, and executes the same commands.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

from bench.client import Answer, answer, pause

RunTask = Callable[[str], Awaitable[None]]


class Direct:
    """The three kinds of load; `run_task` runs the task of a reference, at most `concurrency` at once."""

    def __init__(self, run_task: RunTask, concurrency: int) -> None:
        self.run_task = run_task
        self.concurrency = concurrency

    async def backlog(self, run: str, count: int) -> Answer:
        """Run `count` tasks."""
        gate = asyncio.Semaphore(self.concurrency)

        async def in_turn(reference: str) -> None:
            async with gate:
                await self.run_task(reference)

        await asyncio.gather(*(in_turn(f"{run}-{number}") for number in range(count)))
        return {}

    async def idle(self, run: str, count: int) -> Answer:
        """Run one task at a time; return latencies in ms."""
        latencies = []
        for number in range(count):
            start = time.monotonic()
            await self.run_task(f"{run}-{number}")
            latencies.append((time.monotonic() - start) * 1000)
            await asyncio.sleep(pause())
        return {"latencies": latencies}

    async def paced(self, run: str, count: int, rate: float) -> Answer:
        """Run `rate` tasks per second; return latencies in ms, from the time each was due."""
        begin = time.monotonic() + 0.05

        async def at(number: int) -> float:
            due = begin + number / rate
            await asyncio.sleep(due - time.monotonic())
            await self.run_task(f"{run}-{number}")
            return (time.monotonic() - due) * 1000

        return {"latencies": await asyncio.gather(*(at(number) for number in range(count)))}


async def serve(load: Direct) -> None:
    """Execute commands from standard input until it ends."""
    commands: dict[str, Callable[..., Awaitable[Answer]]] = {
        "backlog": load.backlog,
        "idle": load.idle,
        "paced": load.paced,
    }
    answer({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        answer(await commands[command.pop("do")](**command))
