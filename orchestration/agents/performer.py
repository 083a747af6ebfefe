"""A process in which an agent's requests are performed: the agent's own code runs only here.

It may die or hang: the worker that forked it goes on, and knows which request did it.
"""

import asyncio
import mmap
import os
import struct
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from socket import socket
from typing import Any, NoReturn

from .. import clock, conf
from ..messages import Request
from ..payloads.limits import MAX_BYTES
from .base import Agent

LONGEST_LINE = 2 * MAX_BYTES
_number: ContextVar[int] = ContextVar("number", default=0)


class Mark:
    """Which request's code runs now: memory that two processes share, and that outlives either.

    A request has a number here; 0 while the code of none runs. The count of runs tells a long one from
    two.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)
        self._runs = 0

    def set(self, number: int) -> None:
        """Note that a request's code begins to run; that of none, with 0."""
        self._runs += 1
        struct.pack_into("=QQ", self._memory, 0, number, self._runs)

    def read(self) -> tuple[int, int]:
        """Return the number of the request whose code runs, and the count of runs."""
        number, runs = struct.unpack_from("=QQ", self._memory)
        return number, runs


class Marked(Coroutine[Any, Any, Any]):
    """A coroutine of a request: the mark says so whenever it runs."""

    def __init__(self, inner: Coroutine[Any, Any, Any], mark: Mark, number: int) -> None:
        self._inner, self._mark, self._number = inner, mark, number

    def send(self, value: Any) -> Any:
        """Run on from where it waits."""
        self._mark.set(self._number)
        try:
            return self._inner.send(value)
        except (SystemExit, KeyboardInterrupt):
            os._exit(1)  # while the mark says whose code it was
        finally:
            self._mark.set(0)

    def throw(self, *error: Any) -> Any:
        """Run on with an exception."""
        self._mark.set(self._number)
        try:
            return self._inner.throw(*error)
        finally:
            self._mark.set(0)

    def close(self) -> None:
        """Let it end where it waits."""
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        """Run it within another one."""
        return self._inner.__await__()


def run(agent: Agent, line: socket, mark: Mark) -> NoReturn:
    """Perform the requests that come by `line` until it is closed or idle; end the process."""
    loop = asyncio.new_event_loop()

    def marked(
        loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **given: Any
    ) -> asyncio.Task[Any]:
        number = _number.get()
        inner = Marked(coroutine, mark, number) if number else coroutine
        return asyncio.Task(inner, loop=loop, **given)

    loop.set_task_factory(marked)  # type: ignore[arg-type]
    loop.run_until_complete(_perform(agent, line))
    os._exit(0)


async def _perform(agent: Agent, line: socket) -> None:
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection(sock=line, limit=LONGEST_LINE)
    calls: set[asyncio.Task[None]] = set()
    while True:
        try:
            async with asyncio.timeout(conf.PERFORMER_IDLE):
                text = await reader.readline()
        except TimeoutError:
            if calls:
                continue
            return
        if not text:  # the worker has died
            return
        number, ahead, raw = text.split(b" ", 2)
        clock.follow(float(ahead))
        _number.set(int(number))  # of the new task, and of those that it creates
        call = loop.create_task(_answer(agent, int(number), raw, writer))
        _number.set(0)
        calls.add(call)
        call.add_done_callback(calls.discard)


async def _answer(agent: Agent, number: int, raw: bytes, writer: asyncio.StreamWriter) -> None:
    request = Request.parse(raw)
    reply = await agent.answer(request)
    writer.write(b"%d %s\n" % (number, reply.dump() if reply else b""))
