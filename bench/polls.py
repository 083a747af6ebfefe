"""`python -m bench.polls`: customers watch their orders live while others are placed.

Starts a whole system of its own, as `make run` does. Orders are placed by the API at a steady rate;
each customer opens an order's page and polls at the page's interval until the order has ended, then
watches another. Durations are from the web server's own log: from the moment a thread takes the request
to the last byte.
"""

import argparse
import asyncio
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import aiohttp

from bench.measure import percentile
from drill.stack import Stack

TARGET = 50.0  # ms at the 95th percentile, at the server
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
    timeout = aiohttp.ClientTimeout(total=30)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(address, connector=connector, timeout=timeout) as session:
        watching = [asyncio.create_task(_watch(session, seen)) for _ in range(options.customers)]
        end, due = time.monotonic() + options.seconds, time.monotonic()
        posts: set[asyncio.Task[None]] = set()
        while time.monotonic() < end:
            post = asyncio.create_task(_place(session, token, seen))
            posts.add(post)
            post.add_done_callback(posts.discard)
            due += 1 / options.rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await asyncio.gather(*posts, return_exceptions=True)
        for one in watching:
            one.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
    return seen


async def _place(session: aiohttp.ClientSession, token: str, seen: Seen) -> None:
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": str(uuid4())}
    async with session.post("/api/orders", json=ORDER, headers=headers) as answer:
        if answer.status != 202:
            seen.refused[answer.status] += 1
            return
        page = (await answer.json())["page"]
    seen.placed += 1
    seen.pages.put_nowait(page[page.index("/orders/") :])


async def _watch(session: aiohttp.ClientSession, seen: Seen) -> None:
    """Watch one order after another, always the newest."""
    while True:
        path = await seen.pages.get()
        async with session.get(path) as answer:
            found = POLL.search(await answer.text())
        while found:
            address, pause = found[1].replace("&amp;", "&"), int(found[2]) / 1000
            await asyncio.sleep(pause)
            started = time.monotonic()
            async with session.get(address, headers={"HX-Request": "true"}) as answer:
                text = await answer.text()
            seen.polls.append((time.monotonic() - started) * 1000)
            if answer.status == 200:
                found = POLL.search(text)


def read(log: Path) -> list[Poll]:
    """Return the polls in the web server's log."""
    found = []
    for line in log.read_text().splitlines():
        _, path, status, size, took = line.rsplit(" ", 4)
        if path.startswith("/orders/") and path.endswith("/status/"):
            polled = Poll(
                status=int(status), size=0 if size == "-" else int(size), took=int(took) / 1000
            )
            found.append(polled)
    return found


def report(polls: Sequence[Poll], seen: Seen, options: argparse.Namespace, ended: int) -> list[str]:
    """Return the lines to print."""
    at_server = [one.took for one in polls]
    idle = [one for one in polls if one.status == 204]
    seconds = options.seconds
    lines = [
        f"{options.customers} customers, {options.rate:g} orders/s for {seconds:g} s",
        f"orders: {seen.placed} placed ({seen.placed / seconds:.0f}/s), {ended} processed by then",
        f"refused: {dict(seen.refused) or 'none'}",
        f"polls: {len(polls)} ({len(polls) / seconds:.0f}/s), {len(idle)} unchanged (204)",
        f"bodies of those: {sum(one.size > 0 for one in idle)}",
    ]
    for name, values in (("at the server", at_server), ("at the client", seen.polls)):
        p50, p95, p99 = (percentile(values, share) for share in (0.5, 0.95, 0.99))
        lines.append(f"{name}: p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms")
    return lines


def main() -> int:
    """Run it; return 1 if the target is missed, or an unchanged (204) answer has a body."""
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
        seen = asyncio.run(load(f"http://localhost:{stack.port}", token, options))
        ended = stack.count(PROCESSED)
        polls = read(log)
    finally:
        stack.stop()
    sys.stdout.write("\n".join(report(polls, seen, options, ended)) + "\n")
    slow = percentile([one.took for one in polls], 0.95) > TARGET
    return int(slow or any(one.size for one in polls if one.status == 204))


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.polls", description=__doc__)
    parser.add_argument("--customers", type=int, default=200, help="number, each watching an order")
    parser.add_argument("--rate", type=float, default=100, help="orders per second")
    parser.add_argument("--seconds", type=float, default=30, help="duration")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
