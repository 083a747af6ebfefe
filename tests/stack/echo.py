"""A TCP proxy in front of Redis that delivers every queued message three times."""

import asyncio
import contextlib
import threading
from pathlib import Path

import redis

PUSHES = {b"RPUSH", b"LPUSH"}
QUEUES = (b"sas:", b"rq:queue:")


class Echo:
    """Listens on `port` and forwards to the Redis at `socket`; counts what it repeated."""

    def __init__(self, socket: Path, port: int, times: int = 3) -> None:
        self.socket, self.port, self.extra = str(socket), port, times - 1
        self.repeated = 0
        self._again = redis.Redis(unix_socket_path=self.socket)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Echo":
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join(10)
        self._again.close()

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
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self._ready.set()
        async with server:
            await server.serve_forever()

    async def _serve(self, reader, writer) -> None:
        there = None
        try:
            back, there = await asyncio.open_unix_connection(self.socket)
            await asyncio.gather(self._commands(reader, there), self._answers(back, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for end in filter(None, (writer, there)):
                end.close()

    async def _answers(self, back, writer) -> None:
        while data := await back.read(65536):
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError

    async def _commands(self, reader, there) -> None:
        while True:
            raw, command = await self._command(reader)
            there.write(raw)
            await there.drain()
            if command[0].upper() in PUSHES and command[1].startswith(QUEUES):
                for _ in range(self.extra):
                    self._again.execute_command(*command)
                    self.repeated += 1

    async def _command(self, reader) -> tuple[bytes, list[bytes]]:
        """Read one command: an array of bulk strings (RESP)."""
        raw = await reader.readuntil(b"\r\n")
        parts = []
        for _ in range(int(raw[1:])):
            head = await reader.readuntil(b"\r\n")
            body = await reader.readexactly(int(head[1:]) + 2)
            parts.append(body[:-2])
            raw += head + body
        return raw, parts
