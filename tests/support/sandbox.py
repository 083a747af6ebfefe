"""A sandbox in the test's event loop with a client, or in a process of its own."""

import asyncio
import http.client
import inspect
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientSession, TCPConnector
from aiohttp.web import Server
from multidict import CIMultiDictProxy

from sandbox.database import Database
from sandbox.server import Sandbox
from tests.support.page import elements

ROOT = Path(__file__).resolve().parents[2]
AUTHORIZED = {"Authorization": "Bearer sk_test_tests"}
CHARGE = {
    "amount": "1999",
    "currency": "eur",
    "payment_method": "pm_card_visa",
    "capture_method": "manual",
    "confirm": "true",
    "metadata[order]": "o-1",
}
MAIL = {"order": "o-1", "to": "a@example.org", "subject": "Thanks", "text": "It is on its way."}


@dataclass
class Reply:
    status: int
    raw: bytes
    headers: CIMultiDictProxy[str]

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        return str(self.body["error"]["code"])


class Time:
    """The partners' processing time: it passes, until a test holds it."""

    def __init__(self) -> None:
        self.taken: list[float] = []  # seconds of each pause
        self.held = asyncio.Event()  # a call waits for the release
        self._runs = asyncio.Event()
        self._runs.set()

    async def pause(self, seconds: float) -> None:
        self.taken.append(seconds)
        if self._runs.is_set():
            await asyncio.sleep(seconds)
        else:
            self.held.set()
            await self._runs.wait()

    def hold(self) -> None:
        self._runs.clear()

    def release(self) -> None:
        self._runs.set()


class Client:
    """Calls one sandbox, each time on a new connection, so that aiohttp retries nothing."""

    def __init__(self, session: ClientSession, sandbox: Sandbox, time: Time) -> None:
        self.session = session
        self.sandbox = sandbox
        self.time = time
        self._numbers = itertools.count(1)

    async def call(self, method: str, path: str, body: Any = None, key: str | None = "") -> Reply:
        """Send a request; POSTs get a key of their own unless one is given (None: no key)."""
        headers = dict(AUTHORIZED) if path.startswith(("/v1/", "/payment/")) else {}
        if method == "POST" and key is not None:
            headers["Idempotency-Key"] = key or f"auto-{next(self._numbers)}"
        data = None if body is None else json.dumps(body)
        if path.startswith("/v1/") and body is not None:
            data = urlencode(body)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        async with self.session.request(method, path, data=data, headers=headers) as response:
            return Reply(response.status, await response.read(), response.headers)

    async def get(self, path: str) -> Any:
        reply = await self.call("GET", path)
        assert reply.status == 200, reply.raw
        return reply.body

    async def post(self, path: str, body: Any = None, key: str | None = "") -> Reply:
        return await self.call("POST", path, body, key)

    async def made(self, path: str, body: Any = None, key: str | None = "") -> str:
        """Post a call that has to succeed, and return the id of its object."""
        reply = await self.post(path, body, key)
        assert reply.status < 300, reply.raw
        return str(reply.body["id"])

    async def reserved(self, key: str = "", quantity: int = 1, order: str = "o-1") -> str:
        lines = [{"sku": "mug", "quantity": quantity}]
        return await self.made("/inventory/reservations", {"order": order, "lines": lines}, key)

    async def stocked(self, quantity: int = 10) -> None:
        assert (await self.call("PUT", "/inventory/stock", {"mug": quantity})).status == 200

    async def stock(self) -> dict[str, int]:
        stock: dict[str, int] = (await self.get("/inventory/stock"))["mug"]
        by_warehouse: Any = stock.pop("warehouses")
        assert sum(by_warehouse.values()) == stock["on_hand"]
        held: Any = stock.pop("held")
        assert sum(held.values()) == stock["reserved"]
        del stock["moved_at"]
        return stock

    async def faults(self, *faults: dict[str, Any]) -> Reply:
        return await self.call("PUT", "/faults", {"faults": list(faults)})

    async def entries(self, query: str = "") -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = (await self.get(f"/ledger?{query}"))["entries"]
        return entries


async def bench_call(client: Client, key: str = "k-1", **body: Any) -> Reply:
    """Call the partner without rules of its own."""
    return await client.post("/bench/calls", {"order": "o-1"} | body, key)


async def is_done(client: Client, key: str = "k-1") -> bool:
    return (await client.call("GET", f"/keys/{key}")).status == 200


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Client]:
    """Serve a sandbox without latency on a free port."""
    time = Time()
    sandbox = Sandbox(Database(folder / "ledger.sqlite3"), time.pause)
    sandbox.script.latency = dict.fromkeys(sandbox.script.latency, 0.0)
    web = Server(sandbox.handle, access_log=None)
    server = await asyncio.get_running_loop().create_server(web, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connector = TCPConnector(force_close=True, limit=0)
    try:
        async with ClientSession(f"http://127.0.0.1:{port}", connector=connector) as session:
            yield Client(session, sandbox, time)
    finally:
        server.close()
        await web.shutdown(0.05)
        await sandbox.close()


def served(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Turn `async def test(client, ...)` into a test that serves a fresh sandbox for it."""

    def run(tmp_path: Path, **others: Any) -> None:
        async def inside() -> None:
            async with running(tmp_path) as client:
                await test(client, **others)

        asyncio.run(inside())

    names = ["tmp_path", *list(inspect.signature(test).parameters)[1:]]
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@contextmanager
def process(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "sandbox", "--port", "0", "--data", str(folder), *options]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        try:
            assert started.stdout is not None
            line = started.stdout.readline()
            yield started, int(line.rpartition(":")[2].strip("/\n") or 0)
        finally:
            started.kill()


def send(port: int, method: str, path: str, key: str = "", body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = dict(AUTHORIZED)
    if key:
        headers["Idempotency-Key"] = key
    try:
        connection.request(method, path, json.dumps(body or {}), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


async def submit(client: Client, path: str, headers: Any = None, **form: str) -> Reply:
    """Post a form as a browser does, without following the redirect."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
    async with client.session.post(
        path, data=urlencode(form), headers=headers, allow_redirects=False
    ) as answer:
        return Reply(answer.status, await answer.read(), answer.headers)


async def page(client: Client, path: str = "/") -> str:
    reply = await client.call("GET", path)
    assert reply.status == 200, reply.raw
    assert reply.headers["Content-Type"].startswith("text/html")
    return reply.raw.decode()


def text_of(html: str, ref: str) -> str:
    """Return the text of the element with an id."""
    return elements(html).only(f"#{ref}").text


def restarted(folder: Path, first: Any, then: Any) -> None:
    """Run `first` and `then` with clients of two runs of a sandbox on one folder."""

    async def inside() -> None:
        async with running(folder) as client:
            await first(client)
        async with running(folder) as client:
            await then(client)

    asyncio.run(inside())
