"""A proxy on TCP or Unix sockets that delays, cuts, repeats or discards messages.

`behind(…)` puts one in front of a running server: it takes over the name of the server's socket, so
that all later connections pass through it.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PIECE = 65536
PUSHES = {b"RPUSH", b"LPUSH"}
QUEUES = (b"sas:", b"rq:queue:")


@dataclass
class Spoil:
    """The faults that a proxy applies to a client's messages; counts them.

    Each message is delayed by `delay` seconds. Of the messages that `chosen` selects, every nth
    (`every`) is cut before it reaches the server ("cut_before"), cut after the server has answered
    ("cut_after"), or delivered `times` times ("repeat"). While `swallow` is set, messages and answers
    are discarded without an error.
    """

    act: str = ""  # "", "cut_before", "cut_after", "repeat"
    chosen: Callable[[bytes], bool] = field(default=lambda _: True)
    every: int = 1
    times: int = 3
    delay: float = 0.0
    swallow: bool = False
    seen: int = 0
    struck: int = 0

    def strikes(self, message: bytes) -> bool:
        """Return whether this message is to be spoiled, and count it."""
        if not self.act or not self.chosen(message):
            return False
        self.seen += 1
        if self.seen % self.every:
            return False
        self.struck += 1
        return True


def is_commit(message: bytes) -> bool:
    """Return whether a message to Postgres is a COMMIT."""
    return message[:1] == b"Q" and message[5:].startswith(b"COMMIT")


def is_push(message: bytes) -> bool:
    """Return whether a command to Redis pushes to one of the engine's lists."""
    parts = message.split(b"\r\n", 5)
    return len(parts) > 4 and parts[2].upper() in PUSHES and parts[4].startswith(QUEUES)


async def any_piece(reader: asyncio.StreamReader) -> bytes:
    """Read the bytes that have arrived."""
    return await reader.read(PIECE)


async def redis_command(reader: asyncio.StreamReader) -> bytes:
    """Read one command to Redis: an array of bulk strings."""
    raw = await reader.readuntil(b"\r\n")
    for _ in range(int(raw[1:])):
        head = await reader.readuntil(b"\r\n")
        raw += head + await reader.readexactly(int(head[1:]) + 2)
    return raw


class Proxy:
    """Listens at `here` and forwards to `there`, each a Unix socket or a port."""

    def __init__(
        self,
        here: Path | int,
        there: Path | int,
        spoil: Spoil,
        read: Callable[[asyncio.StreamReader], Awaitable[bytes]] = any_piece,
    ) -> None:
        self.here, self.there, self.spoil, self._read = here, there, spoil, read
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Proxy":
        self._thread.start()
        assert self._ready.wait(10), "the proxy does not listen"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join(10)

    def _run(self) -> None:
        self._main = self._loop.create_task(self._listen())
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._main)
        self._loop.run_until_complete(self._end_connections())
        self._loop.close()

    async def _end_connections(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _listen(self) -> None:
        if isinstance(self.here, int):
            server = await asyncio.start_server(self._serve, "127.0.0.1", self.here)
        else:
            server = await asyncio.start_unix_server(self._serve, str(self.here))
        self._ready.set()
        async with server:
            await asyncio.Event().wait()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.there, int):
            return await asyncio.open_connection("127.0.0.1", self.there)
        return await asyncio.open_unix_connection(str(self.there))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        answers: asyncio.Task[None] | None = None
        try:
            back, there = await self._connect()
            ends.append(there)
            lost = asyncio.Event()  # once set, the next answer is discarded
            answers = asyncio.create_task(self._answers(back, writer, lost))
            asking = asyncio.create_task(self._messages(reader, there, lost))
            await asyncio.wait([answers, asking], return_when=asyncio.FIRST_COMPLETED)
            for task in (answers, asking):
                task.cancel()
            await asyncio.gather(answers, asking, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # the client or the server is gone, or the proxy ends
        finally:
            for end in ends:
                end.close()

    async def _answers(
        self, back: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event
    ) -> None:
        while data := await back.read(PIECE):
            if lost.is_set():
                return
            if not self.spoil.swallow:
                writer.write(data)
                await writer.drain()

    async def _messages(
        self, reader: asyncio.StreamReader, there: asyncio.StreamWriter, lost: asyncio.Event
    ) -> None:
        while message := await self._read(reader):
            if self.spoil.delay:
                await asyncio.sleep(self.spoil.delay)
            if self.spoil.swallow:
                continue
            act = self.spoil.act if self.spoil.strikes(message) else ""
            if act == "cut_before":
                return
            if act == "cut_after":
                lost.set()
            there.write(message)
            await there.drain()
            if act == "repeat":
                await self._repeat(message)
            if act == "cut_after":
                await asyncio.sleep(5)  # the answer ends the connection

    async def _repeat(self, message: bytes) -> None:
        """Deliver a message again, on another connection."""
        reader, writer = await self._connect()
        for _ in range(self.spoil.times - 1):
            writer.write(message)
            await reader.readuntil(b"\r\n")
        writer.close()


@contextmanager
def behind(
    socket: Path,
    moved: Path,
    spoil: Spoil,
    read: Callable[[asyncio.StreamReader], Awaitable[bytes]] = any_piece,
) -> Iterator[Spoil]:
    """Put a proxy in front of the server at `socket`, whose own socket becomes `moved`."""
    socket.rename(moved)
    try:
        with Proxy(socket, moved, spoil, read):
            socket.chmod(0o777)
            yield spoil
    finally:
        moved.replace(socket)
