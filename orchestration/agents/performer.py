"""The process that performs an isolated agent's requests; the agent's code runs only here.

It may die or hang. The worker that forked it continues, and knows which request was the cause.
"""

import asyncio
import mmap
import os
import struct
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from socket import socket
from typing import Any, NoReturn

from .. import conf
from ..database import clock
from ..messaging.messages import Request
from ..payloads.limits import MAX_BYTES
from ..tracing import switch
from ..tracing.subject import subject
from .base import Agent

LONGEST_LINE = 2 * MAX_BYTES
_number: ContextVar[int] = ContextVar("number", default=0)


class Mark:
    """The request whose code runs now, in memory shared by two processes; it survives either.

    Each request has a number here; 0 means that no request's code runs. The count of runs distinguishes
    one long run from two.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)
        self._runs = 0

    def set(self, number: int) -> None:
        """Record that a request's code starts to run, or with 0 that it has stopped."""
        self._runs += 1
        struct.pack_into("=QQ", self._memory, 0, number, self._runs)

    def read(self) -> tuple[int, int]:
        """Return the number of the request whose code runs, and the count of runs."""
        number, runs = struct.unpack_from("=QQ", self._memory)
        return number, runs


class Marked(Coroutine[Any, Any, Any]):
    """A coroutine of a request that sets the mark while it runs."""

    def __init__(self, inner: Coroutine[Any, Any, Any], mark: Mark, number: int) -> None:
        self._inner, self._mark, self._number = inner, mark, number

    def send(self, value: Any) -> Any:
        """Resume it with a value."""
        self._mark.set(self._number)
        try:
            return self._inner.send(value)
        except (SystemExit, KeyboardInterrupt):
            os._exit(1)  # while the mark still names the request
        finally:
            self._mark.set(0)

    def throw(self, *error: Any) -> Any:
        """Resume it with an exception."""
        self._mark.set(self._number)
        try:
            return self._inner.throw(*error)
        finally:
            self._mark.set(0)

    def close(self) -> None:
        """End it where it waits."""
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        """Await it within another coroutine."""
        return self._inner.__await__()


def run(agent: Agent, line: socket, mark: Mark) -> NoReturn:
    """Perform the requests that arrive on `line` until it is closed or idle; end the process."""
    loop = asyncio.new_event_loop()

    def marked(
        loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        number = _number.get()
        inner = Marked(coroutine, mark, number) if number else coroutine
        return asyncio.Task(inner, loop=loop, **options)

    loop.set_task_factory(marked)  # type: ignore[arg-type]
    loop.run_until_complete(_perform(agent, line))
    switch.finish()
    os._exit(0)


async def _perform(agent: Agent, line: socket) -> None:
    loop = asyncio.get_running_loop()
    reader, writer = await asyncio.open_connection(sock=line, limit=LONGEST_LINE)
    calls: set[asyncio.Task[None]] = set()
    while True:
        try:
            async with asyncio.timeout(conf.PERFORMER_IDLE_S):
                text = await reader.readline()
        except TimeoutError:
            if calls:
                continue
            return
        if not text:  # the worker has died
            return
        number, ahead, raw = text.split(b" ", 2)
        clock.follow(float(ahead))
        _number.set(int(number))  # inherited by the new task and the tasks that it creates
        call = loop.create_task(_answer(agent, int(number), raw, writer))
        _number.set(0)
        calls.add(call)
        call.add_done_callback(calls.discard)


async def _answer(agent: Agent, number: int, raw: bytes, writer: asyncio.StreamWriter) -> None:
    request = Request.parse(raw)
    subject.set(request)
    reply = await agent.answer(request)
    writer.write(b"%d %s\n" % (number, reply.dump() if reply else b""))
