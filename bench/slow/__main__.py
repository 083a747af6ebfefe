"""`python -m bench.slow`: what slow clients cost the others, behind the proxy and without it.

Starts a whole system of its own, as `make run` does, and the real nginx with `deploy/nginx`. 16, 200 and
2,000 clients send their headers or bodies slowly, or read slowly; `/livez` is asked four times a second.
Behind the proxy every answer has to be there within a second, and an order is placed meanwhile.
"""

import argparse
import http.client
import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.console import conclude, interruptible, progress, table
from bench.measure import percentile
from bench.slow.clients import KINDS
from deploy.proxy import proxy
from drill.shopper import Shopper
from drill.stack import Stack
from drill.waiting import pause, wait_for

COUNTS = (16, 200, 2000)
LIMIT = 1.0  # seconds within which each answer has to be there
EVERY = 0.25  # seconds between two probes
FILES = 20_000  # open ones: each client and its peer is one
ONE_ADDRESS = "bodies, one address"
PATHS = {"headers": "/", "bodies": "/cart/add/"}
HEAD = (
    "clients",
    "number",
    "before it",
    "/livez in time",
    "slowest, ms",
    "order placed in, s",
    "refused",
)


@dataclass
class Case:
    """What one kind and number of slow clients did."""

    name: str
    count: int
    proxied: bool
    answers: list[float] = field(default_factory=list)  # seconds
    asked: int = 0
    bought: float | None = None
    seen: dict[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Return whether all probes were answered in time, and the order accepted."""
        return self.asked == len(self.answers) > 0 and self.bought is not None

    def row(self) -> list[str]:
        """Return the line of the table."""
        slowest = f"{percentile(self.answers, 1) * 1000:.0f}" if self.answers else "-"
        bought = f"{self.bought:.1f}" if self.bought is not None else "-"
        return [
            self.name,
            f"{self.count:,}",
            "nginx" if self.proxied else "nothing",
            f"{len(self.answers)} of {self.asked}",
            slowest if self.asked == len(self.answers) else "no answer",
            bought if self.proxied else "not tried",
            f"{self.seen.get('429', 0):,}",
        ]


@contextmanager
def clients(case: Case, port: int, path: str) -> Iterator[None]:
    """Run the slow clients, once all are connected, until the block ends."""
    kind, _, alone = case.name.partition(", ")
    command = [sys.executable, "-m", "bench.slow.clients", kind, str(case.count), str(port), path]
    command += ["--one-address"] if alone else []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=30)
    case.seen = json.loads(output)


def probe(port: int) -> float | None:
    """Return the seconds that `/livez` took; None if it was not answered in time."""
    began = time.monotonic()
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    try:
        link.request("GET", "/livez")
        answered = link.getresponse().status == 200
    except OSError:
        return None
    finally:
        link.close()
    took = time.monotonic() - began
    return took if answered and took <= LIMIT else None


def measure(case: Case, port: int, path: str, seconds: float) -> None:
    """Have the slow clients come, and ask for `/livez` all the while; then place an order."""
    with clients(case, port, path):
        began = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            case.asked += 1
            if (took := probe(port)) is not None:
                case.answers.append(took)
            pause(max(0.0, now + EVERY - time.monotonic()))
        if case.proxied:
            began = time.monotonic()
            Shopper(port).buy()
            case.bought = time.monotonic() - began


def cases() -> Iterator[Case]:
    """Return all of them, in the order of the table."""
    for kind in KINDS:
        for count in COUNTS:
            yield Case(kind, count, proxied=True)
    yield Case(ONE_ADDRESS, COUNTS[1], proxied=True)
    for kind in KINDS:
        for count in COUNTS:
            yield Case(kind, count, proxied=False)


def longest(folder: Path) -> str:
    """Return the path of the longest of the static files, which have their checksum in their names."""
    files = (file for file in folder.rglob("*.*.*") if file.suffix in {".js", ".css"})
    return f"/static/{max(files, key=lambda file: file.stat().st_size).relative_to(folder)}"


def run(options: argparse.Namespace) -> int:
    """Measure all cases, and print them; return 1 if one behind the proxy is not good."""
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    stack = Stack("slow", PROXIES="1", WEB_CONCURRENCY="2")
    shutil.rmtree(stack.folder.with_name("slow-proxy"), ignore_errors=True)
    done: list[Case] = []
    try:
        stack.start()
        paths = {**PATHS, "readers": longest(stack.folder / "static")}
        progress(f"readers ask for {paths['readers']}")
        with proxy(stack.folder.with_name("slow-proxy"), stack.port) as port:
            for case in cases():
                at = port if case.proxied else stack.port
                measure(case, at, paths[case.name.partition(",")[0]], options.seconds)
                progress(f"{' | '.join(case.row())} {case.seen}")
                done.append(case)
                wait_for(lambda at=at: probe(at), "the web server answers again", 60)
    finally:
        stack.stop()
    print(table(HEAD, [case.row() for case in done], names=3))
    return conclude(
        [
            f"{case.count} {case.name}: every /livez answered within {LIMIT:g} s, an order placed"
            for case in done
            if case.proxied and not case.good
        ]
    )


def main() -> int:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.slow", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="duration of each case")
    return interruptible(run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
