"""`python -m bench.slow.clients KIND COUNT PORT PATH`: slow clients, until SIGTERM.

Each has an address of its own, so that limits per address do not end them, unless `--one-address`. A client
that is disconnected, or refused, connects again at once. At SIGTERM it prints how often each happened.
"""

import argparse
import asyncio
import json
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress

import uvloop

PAUSE = 1.5  # seconds between two pieces
RECEIVE_BUFFER = 4096  # bytes that a slow reader's kernel takes for it
AGAIN = 0.2  # seconds until a client comes again
REQUESTS = (
    40  # that a slow reader sends at once: their answers are more than a kernel's buffers hold
)
HEAD = "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Slow: "
BODY = (  # without a cookie the shop would refuse the form unread
    f"Cookie: csrftoken={'a' * 32}\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100000\r\n\r\n"
    "csrfmiddlewaretoken="
)
Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str], Coroutine[None, None, None]]


async def headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
    """Send a header that never ends."""
    writer.write(head.encode())
    await _trickle(reader, writer)


async def bodies(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
    """Send a body that does not end for two days."""
    writer.write(f"{head}1\r\n{BODY}".encode())
    await _trickle(reader, writer)


async def readers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
    """Ask for something long, many times, and read a few bytes of it at a time."""
    writer.write(f"{head}1\r\n\r\n".encode() * REQUESTS)
    while await reader.read(16):  # noqa: ASYNC110 - it is slow
        await asyncio.sleep(PAUSE)


async def _trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x")
        await writer.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(PAUSE):
                if answer := await reader.read(64):
                    raise _Answered(answer.split(b" ")[1].decode())
                return


class _Answered(Exception):
    """The server answers before the request is complete; the status is its argument."""


KINDS: dict[str, tuple[str, Client]] = {
    "headers": ("GET", headers),
    "bodies": ("POST", bodies),
    "readers": ("GET", readers),
}


async def run_client(number: int, options: argparse.Namespace, seen: Counter[str]) -> None:
    """Be one client, again and again."""
    host = f"127.{1 + number // 65536}.{number // 256 % 256}.{number % 256}"
    method, client = KINDS[options.kind]
    head = HEAD.format(method=method, path=options.path, port=options.port)
    while True:
        link = socket.socket()
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        link.setblocking(False)
        link.bind(("127.1.0.1" if options.one_address else host, 0))
        with suppress(OSError), link:
            await asyncio.get_running_loop().sock_connect(link, ("127.0.0.1", options.port))
            reader, writer = await asyncio.open_connection(sock=link, limit=1)
            seen["connected"] += 1
            try:
                await client(reader, writer, head)
                seen["closed"] += 1
            except _Answered as answer:
                seen[answer.args[0]] += 1
            finally:
                writer.close()
        await asyncio.sleep(AGAIN)


async def attack(options: argparse.Namespace) -> None:
    """Be all of them until SIGTERM."""
    stop, seen = asyncio.Event(), Counter[str]()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    clients = [asyncio.create_task(run_client(n, options, seen)) for n in range(options.count)]
    await stop.wait()
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    sys.stdout.write(json.dumps(seen))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.slow.clients", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("count", type=int)
    parser.add_argument("port", type=int)
    parser.add_argument("path")
    parser.add_argument("--one-address", action="store_true", help="all come from the same one")
    uvloop.run(attack(parser.parse_args()))


if __name__ == "__main__":
    main()
