"""`python -m bench.polls`: customers watch their orders live while others are placed.

Starts a whole system of its own, as `make run` does. Orders are placed at a steady rate, by the API or, with
`--checkout`, by new customers, each with an address of its own: they open the shop, fill a cart and check
out. Those who watch open an order's page and poll at its interval until the order has ended, then watch
another. Durations are from the web server's own log: from the moment a thread takes the request to the last
byte. Every order has to be completed soon after the last one is placed.
"""

import argparse
import asyncio
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from pathlib import Path
from uuid import uuid4

import aiohttp

from bench.console import conclude
from bench.measure import cpu_seconds, percentile
from drill.shopper import DETAILS, value_of
from drill.stack import Stack
from drill.waiting import wait_for

LOOK = 50.0  # ms that a poll takes at the server, at the 95th percentile: the target
DRAIN = 10.0  # seconds from the last order placed to the last one completed: the target
TIMEOUT = aiohttp.ClientTimeout(total=30)
PATIENCE = 600.0  # seconds until the rest is given up
POLL = re.compile(r'hx-get="([^"]+)" hx-trigger="every (\d+)ms"')
LOG = "%(m)s %(U)s %(s)s %(B)s %(D)s"  # method, path, status, bytes, microseconds
ORDER = {
    "email": "ada@example.org",
    "address": {"name": "Ada", "street": "Rue de Lyon 12", "postcode": "1203", "city": "Genève",
                "country": "CH"},
    "payment_method": "pm_card_visa",
    "lines": [{"sku": "tea-mint", "quantity": 1}],
}  # fmt: skip
PROCESSED = (
    "SELECT count(*) FROM orchestration_task WHERE workflow = 'process_order'"
    " AND state = 'processed'"
)
CLIENTS = "clients"


@dataclass
class Seen:
    """The clients' results: refusals by status, and durations of polls in ms."""

    placed: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    polls: list[float] = field(default_factory=list)
    pages: asyncio.LifoQueue[str] = field(default_factory=asyncio.LifoQueue)


@dataclass(frozen=True, kw_only=True)
class Poll:
    """One poll in the server's log; `took` is in ms."""

    status: int
    size: int
    took: float


async def load(address: str, token: str, options: argparse.Namespace) -> Seen:
    """Place orders and watch them for `options.seconds`."""
    seen = Seen()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(address, connector=connector, timeout=TIMEOUT) as session:
        watching = [asyncio.create_task(_watch(session, seen)) for _ in range(options.customers)]
        end, due = time.monotonic() + options.seconds, time.monotonic()
        posts: set[asyncio.Task[None]] = set()
        for number in count():
            if time.monotonic() >= end:
                break
            placing = _check_out(address, number) if options.checkout else _post(session, token)
            post = asyncio.create_task(_place(placing, seen))
            posts.add(post)
            post.add_done_callback(posts.discard)
            due += 1 / options.rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await asyncio.gather(*posts, return_exceptions=True)
        for watcher in watching:
            watcher.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
    return seen


class _Refused(Exception):
    """An order was not accepted; the status of the answer is its argument."""


async def _place(placing: Awaitable[str], seen: Seen) -> None:
    """Count an order, and queue its page, whose path `placing` returns, for those who watch."""
    try:
        page = await placing
    except _Refused as refused:
        seen.refused[refused.args[0]] += 1
    else:
        seen.placed += 1
        seen.pages.put_nowait(page)


async def _post(session: aiohttp.ClientSession, token: str) -> str:
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": str(uuid4())}
    async with session.post("/api/orders", json=ORDER, headers=headers) as answer:
        if answer.status != 202:
            raise _Refused(answer.status)
        page = (await answer.json())["page"]
    return str(page[page.index("/orders/") :])


async def _check_out(address: str, number: int) -> str:
    """Place an order in the shop's pages, from an address by which its rate limit knows this customer."""
    host = f"127.{1 + number // 65536}.{number // 256 % 256}.{number % 256}"
    async with aiohttp.ClientSession(
        address,
        connector=aiohttp.TCPConnector(local_addr=(host, 0)),
        cookie_jar=aiohttp.CookieJar(unsafe=True),  # of a host without a name
        timeout=TIMEOUT,
    ) as customer:

        async def send(path: str, **fields: str) -> tuple[str, str]:
            if fields:
                cookies = {cookie.key: cookie.value for cookie in customer.cookie_jar}
                fields["csrfmiddlewaretoken"] = cookies["csrftoken"]
            async with customer.request(
                "POST" if fields else "GET", path, data=fields or None, allow_redirects=False
            ) as answer:
                if answer.status >= HTTPStatus.BAD_REQUEST:
                    raise _Refused(answer.status)
                return await answer.text(), answer.headers.get("Location", "")

        shop, _ = await send("/")
        await send("/cart/add/", sku=value_of(shop, "sku"), quantity="1")
        await send("/checkout/")
        sums, _ = await send("/checkout/sums/", **DETAILS)
        _, order = await send("/checkout/", token=value_of(sums, "token"), **DETAILS)
        return order


async def _watch(session: aiohttp.ClientSession, seen: Seen) -> None:
    """Watch one order after another, always the newest."""
    while True:
        path = await seen.pages.get()
        async with session.get(path) as answer:
            match = POLL.search(await answer.text())
        while match:
            address, pause = match[1].replace("&amp;", "&"), int(match[2]) / 1000
            await asyncio.sleep(pause)
            started = time.monotonic()
            async with session.get(address, headers={"HX-Request": "true"}) as answer:
                text = await answer.text()
            seen.polls.append((time.monotonic() - started) * 1000)
            if answer.status == 200:
                match = POLL.search(text)


def read(log: Path) -> list[Poll]:
    """Return the polls in the web server's log."""
    polls = []
    for line in log.read_text().splitlines():
        _, path, status, size, took = line.rsplit(" ", 4)
        if path.startswith("/orders/") and path.endswith("/status/"):
            polled = Poll(
                status=int(status), size=0 if size == "-" else int(size), took=int(took) / 1000
            )
            polls.append(polled)
    return polls


@dataclass(frozen=True, kw_only=True)
class Drain:
    """Orders completed by the time the last was placed, and seconds until the rest were."""

    by_then: int
    completed: int
    seconds: float


def drain(stack: Stack, expected: int) -> Drain:
    """Wait until all orders are completed, or until `PATIENCE` ends."""
    began = time.monotonic()
    by_then = stack.count(PROCESSED)
    with suppress(AssertionError):
        wait_for(lambda: stack.count(PROCESSED) >= expected, "all are completed", PATIENCE)
    seconds = time.monotonic() - began
    return Drain(by_then=by_then, completed=stack.count(PROCESSED), seconds=seconds)


def processor(stack: Stack) -> dict[str, float]:
    """Return seconds of CPU so far, by process; this one's as `CLIENTS`."""
    running = {
        part["name"]: part["pid"] for part in stack.manage("getAllProcessInfo") if part["pid"]
    }
    used = {name: cpu_seconds(pid) for name, pid in running.items()}
    return used | {CLIENTS: time.process_time()}


def shares(before: Mapping[str, float], after: Mapping[str, float], orders: int) -> str:
    """Return ms of CPU per order, of each process that took some, the largest first."""
    used = {name: (after[name] - before[name]) * 1000 / orders for name in before}
    parts = sorted(used.items(), key=lambda part: -part[1])
    named = ", ".join(f"{name} {ms:.2f}" for name, ms in parts if ms >= 0.05)
    return f"CPU per order: {sum(used.values()):.1f} ms ({named})"


def report(
    polls: Sequence[Poll], seen: Seen, options: argparse.Namespace, rest: Drain
) -> list[str]:
    """Return the lines to print."""
    at_server = [poll.took for poll in polls]
    idle = [poll for poll in polls if poll.status == 204]
    seconds, way = options.seconds, "checkout" if options.checkout else "the API"
    lines = [
        f"{options.customers} customers, {options.rate:g} orders/s by {way} for {seconds:g} s",
        f"orders: {seen.placed} placed ({seen.placed / seconds:.0f}/s), {rest.by_then} completed by then",
        f"completed: {rest.completed} of {seen.placed}, {rest.seconds:.1f} s after the last was placed",
        f"refused: {dict(seen.refused) or 'none'}",
        f"polls: {len(polls)} ({len(polls) / seconds:.0f}/s), {len(idle)} unchanged (204)",
        f"bodies of those: {sum(poll.size > 0 for poll in idle)}",
    ]
    for name, values in (("at the server", at_server), ("at the client", seen.polls)):
        p50, p95, p99 = (percentile(values, share) for share in (0.5, 0.95, 0.99))
        lines.append(f"{name}: p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms")
    return lines


def main() -> int:
    """Run it; return 1 if a target is missed, or an unchanged (204) answer has a body."""
    options = parse_options()
    stack = Stack("polls")
    log = stack.folder / "access.log"
    arguments = f"--access-logfile {log} --access-logformat '{LOG}'"
    stack.environment["GUNICORN_CMD_ARGS"] = arguments
    del stack.environment["NICENESS"]  # the default, since priorities matter here
    try:
        stack.start()
        stack.sql("UPDATE orchestration_application SET rate = 1000000")
        token = f"sas_{(stack.folder / 'secrets' / 'example_token').read_text()}"
        before = processor(stack)
        seen = asyncio.run(load(f"http://127.0.0.1:{stack.port}", token, options))
        rest = drain(stack, seen.placed)
        used = shares(before, processor(stack), seen.placed)
        polls = read(log)
    finally:
        stack.stop()
    print("\n".join([*report(polls, seen, options, rest), used]))
    missed = []
    if rest.completed < seen.placed or rest.seconds > DRAIN:
        missed.append(f"all completed within {DRAIN:g} s of the last one placed")
    if percentile([poll.took for poll in polls], 0.95) > LOOK:
        missed.append(f"95 % of looks within {LOOK:g} ms")
    if any(poll.size for poll in polls if poll.status == 204):
        missed.append("an unchanged answer has no body")
    return conclude(missed)


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.polls", description=__doc__)
    parser.add_argument("--customers", type=int, default=200, help="number, each watching an order")
    parser.add_argument("--rate", type=float, default=100, help="orders per second")
    parser.add_argument("--seconds", type=float, default=30, help="duration")
    parser.add_argument("--checkout", action="store_true", help="customers check out; no API")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
