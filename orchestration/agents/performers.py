"""Manage the processes that perform one isolated agent's requests, from their worker's side.

The agent's code may kill or block its process. The request that does so fails alone. The other requests
are repeated in another process, within their attempt and under their key.
"""

import asyncio
import logging
import os
import signal
import socket
import time
import traceback
import warnings
from collections.abc import Iterable
from contextlib import suppress

from .. import conf
from ..database import clock
from ..decisions.progress import outcome_of_repeat
from ..messaging.messages import Reply, Request
from . import performer
from .base import Agent

logger = logging.getLogger(__name__)


class Lost(Exception):
    """A request was not answered because its process died or is blocked.

    `caused_crash` is whether the request's own code ran then; None if no request's code did.
    """

    def __init__(self, why: str, *, caused_crash: bool | None) -> None:
        super().__init__(why)
        self.caused_crash = caused_crash


class Performer:
    """One process that performs requests."""

    def __init__(self, agent: Agent, others: Iterable["Performer"]) -> None:
        self.mark = performer.Mark()
        self.open = True  # takes requests
        self.used_up = False  # a request blocked it until the end of its time
        self.line, theirs = socket.socketpair()
        self.process = _fork(
            agent, self.mark, theirs, [self.line, *(other.line for other in others)]
        )
        self._last = 0
        self._calls: dict[int, asyncio.Future[bytes | None]] = {}
        self._seen = (0, 0)
        self._since = 0.0
        self._writer = asyncio.create_task(self._connect())

    @property
    def load(self) -> int:
        """The number of its requests."""
        return len(self._calls)

    async def answer(self, request: bytes, seconds: float) -> bytes | None:
        """Perform a request; return its reply, or None if it is late. Raises `Lost`.

        A late request that waits does not disturb the others; one whose code still runs does.
        """
        self._last += 1
        number = self._last
        call = self._calls[number] = asyncio.get_running_loop().create_future()
        try:
            writer = await self._writer
            writer.write(b"%d %r %s\n" % (number, clock.ahead(), request))
            async with asyncio.timeout(seconds):
                reply: bytes | None = await call
        except TimeoutError:
            if self.mark.read()[0] != number:
                return None
            self.used_up = True
            self.kill("it was blocked")
            raise Lost("it blocked its process", caused_crash=True) from None
        finally:
            self._calls.pop(number, None)
        return reply

    async def _connect(self) -> asyncio.StreamWriter:
        limit = performer.LONGEST_LINE
        reader, writer = await asyncio.open_connection(sock=self.line, limit=limit)
        self._listening = asyncio.create_task(self._listen(reader))
        return writer

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                number, reply = line.rstrip(b"\n").split(b" ", 1)
                if (call := self._calls.get(int(number))) and not call.done():
                    call.set_result(reply or None)
        self.kill("its process died")
        (await self._writer).close()

    def blocked_for(self) -> float:
        """Return the seconds for which one run of a request's code has been observed."""
        seen, now = self.mark.read(), time.monotonic()
        if seen != self._seen or not seen[0]:
            self._seen, self._since = seen, now
        return now - self._since

    def quarantine(self) -> None:
        """Leave the process to the request that blocks it; its other requests are lost."""
        self.open = False
        culprit, _ = self._seen
        if culprit not in self._calls:  # its request was answered, but left code that still runs
            self.kill("its process is blocked")
            return
        with suppress(OSError):  # the process may have just ended
            os.setpriority(os.PRIO_PROCESS, self.process, 19)
        self._lose("its process is blocked", but=culprit, culprit=culprit)

    def is_alive(self) -> bool:
        """Return whether it takes requests; the requests of an ended process are lost."""
        if self.process:
            ended, status = os.waitpid(self.process, os.WNOHANG)
            if ended:
                self._reap(status, "its process died")
        return self.open

    def kill(self, why: str) -> None:
        """End the process, if it has not ended; its requests are lost."""
        if self.process:
            os.kill(self.process, signal.SIGKILL)
            _, status = os.waitpid(self.process, 0)
            self._reap(status, why)

    def _reap(self, status: int, why: str) -> None:
        self.open, self.process = False, 0
        code = os.waitstatus_to_exitcode(status)
        culprit, _ = self.mark.read()
        self._lose(f"{why} ({signal.Signals(-code).name if code < 0 else code})", culprit=culprit)

    async def closed(self) -> None:
        """Wait until the line to an ended process is closed."""
        writer = await self._writer
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        await self._listening

    def _lose(self, why: str, *, culprit: int, but: int = 0) -> None:
        known = culprit in self._calls
        for number, call in list(self._calls.items()):
            if number != but and not call.done():
                call.set_exception(Lost(why, caused_crash=number == culprit if known else None))


def _fork(
    agent: Agent, mark: performer.Mark, line: socket.socket, inherited: Iterable[socket.socket]
) -> int:
    """Return the id of a new process that performs the requests on `line`."""
    with warnings.catch_warnings():
        # other threads hold no lock that the agent's code needs; a child that hangs is replaced
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        line.close()
        return process
    try:
        for number in (signal.SIGTERM, signal.SIGINT):  # the worker decides when it ends
            signal.signal(number, signal.SIG_IGN)
        for inherited_line in inherited:  # the end of its line shows that the worker ended
            inherited_line.close()
        performer.run(agent, line, mark)
    except BaseException:  # noqa: BLE001 - never back into the worker's code
        traceback.print_exc()
    finally:
        os._exit(1)


def _of_repeat(raw: bytes) -> bytes:
    """Return the reply to a request that was performed anew; a refusal in it has the doubt itself."""
    reply = Reply.parse(raw)
    return reply.altered(outcome=outcome_of_repeat(reply.outcome)).dump()


class Performers:
    """The performing processes of a worker: one, or several while requests kill or block them."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._performers: dict[bool, list[Performer]] = {False: [], True: []}
        self._apart: list[Performer] = []
        self._troubled_until = 0.0
        self._come_back = True  # whether blocked processes recover, as last observed
        self._watch: asyncio.Task[None] | None = None
        self._calls = 0

    async def answer(self, request: Request) -> bytes | None:
        """Perform a request; return its reply, if there is one."""
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look())
        self._calls += 1
        try:
            return await self._answer(request)
        finally:
            self._calls -= 1

    async def _answer(self, request: Request) -> bytes | None:
        unexplained, repeated = 0, False
        while (left := request.complete_by - conf.REPLY_MARGIN_S / 2 - clock.now()) > 0:
            performer_of = self._choose(request)
            try:
                reply = await performer_of.answer(request.dump(), left)
            except Lost as lost:
                if time.monotonic() > self._troubled_until:
                    self._come_back = True  # the last observation is too old
                self._come_back = self._come_back and not performer_of.used_up
                self._troubled_until = time.monotonic() + conf.PERFORMERS_KEPT_S
                unexplained += lost.caused_crash is None
                if lost.caused_crash or unexplained > conf.MAX_UNEXPLAINED_DEATHS:
                    return self._agent.failed(request, str(lost)).dump()
                logger.warning("another process goes on with it: %s", lost)
                # its call may have been made
                request, repeated = request.altered(in_doubt=True), True
            else:
                self._come_back = self._come_back or not performer_of.open
                return _of_repeat(reply) if repeated and reply else reply
        return None

    def _choose(self, request: Request) -> Performer:
        """Return the process for a request: the least busy, or a new one while there are too few.

        After a death or a block, repeated attempts use separate processes: a request that killed its
        process is likely to do so again.
        """
        troubled = time.monotonic() < self._troubled_until
        self.tidy()
        pool = self._performers[troubled and request.attempt > 1]
        if len(pool) < (conf.MAX_PERFORMERS if troubled else 1):
            others = [*self._performers[False], *self._performers[True], *self._apart]
            pool.append(Performer(self._agent, others))
            return pool[-1]
        return min(pool, key=lambda child: child.load)

    def tidy(self) -> None:
        """Remove ended processes; idle ones end by themselves."""
        for pool in self._performers.values():
            pool[:] = [child for child in pool if child.is_alive()]

    async def _look(self) -> None:
        """Monitor the processes while they have requests."""
        while self._calls:
            await asyncio.sleep(conf.PERFORMER_BLOCKED_AFTER_S / 4)
            for pool in self._performers.values():
                for child in pool:
                    if child.open and child.blocked_for() > conf.PERFORMER_BLOCKED_AFTER_S:
                        child.quarantine()
                        self._apart.append(child)
            # each uses a place of the agent's window: if they do not recover, only the first may use
            # up its time
            for child in self._apart[conf.MAX_BLOCKED_PERFORMERS if self._come_back else 1 :]:
                child.kill("it was blocked")
            for child in self._apart:
                if not child.load:
                    child.kill("its last request has ended")
            self._apart = [child for child in self._apart if child.process]

    async def close(self) -> None:
        """End the processes."""
        for child in [*self._performers[False], *self._performers[True], *self._apart]:
            child.kill("the worker ends")
            await child.closed()
