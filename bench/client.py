"""Loads one system: submits tasks, observes their ends, reports latencies.

The clients of all systems use this module, so that all are timed alike. Each is a process that reads
commands as lines of JSON and answers each with a line of JSON. It runs in the project's environment
and in the peers', and imports only the standard library.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

BATCH = 500  # tasks submitted at once
POLL = 0.002  # seconds between two queries for ended tasks
POLL_PACED = 0.005  # with many tasks, since queries take CPU from the system
POLL_BACKLOG = 0.05  # a hundredth of a run
PATIENCE = 240.0  # seconds after which a run counts as stuck

Answer = dict[str, Any]


class Driver(Protocol):
    """The interface of a system under test."""

    def submit(self, references: Sequence[str]) -> None:
        """Submit one task per reference, in the system's most durable and cheapest way."""

    def finished(self, references: Iterable[str]) -> set[str]:
        """Return the references whose tasks have ended."""

    def settled(self, run: str, count: int) -> bool:
        """Return whether all `count` tasks of a run have ended; raise RuntimeError if one failed."""


class Client:
    """The three kinds of load. All references of a run begin with its name."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def backlog(self, run: str, count: int) -> Answer:
        """Submit `count` tasks as fast as they are accepted, and wait until all have ended."""
        references = [f"{run}-{number}" for number in range(count)]
        give_up_at = time.monotonic() + PATIENCE
        for start in range(0, count, BATCH):
            self.driver.submit(references[start : start + BATCH])
        while not self.driver.settled(run, count):
            _check(give_up_at, run)
            time.sleep(POLL_BACKLOG)
        return {}

    def idle(self, run: str, count: int) -> Answer:
        """Submit each task after the end of the previous one; return latencies in ms."""
        latencies = []
        for number in range(count):
            reference = f"{run}-{number}"
            start = time.monotonic()
            self.driver.submit([reference])
            while not self.driver.finished([reference]):
                _check(start + PATIENCE, run)
                time.sleep(POLL)
            latencies.append((time.monotonic() - start) * 1000)
            time.sleep(pause())
        return {"latencies": latencies}

    def paced(self, run: str, count: int, rate: float) -> Answer:
        """Submit `rate` tasks per second; return latencies in ms, from the time each was due.

        Tasks are submitted when due even if the system falls behind. Delays of this client count as
        latency of the system.
        """
        begin = time.monotonic() + 0.05
        due = {f"{run}-{number}": begin + number / rate for number in range(count)}
        waiting: set[str] = set()
        latencies: list[float] = []
        observer = threading.Thread(target=self._observe, args=(run, due, waiting, latencies))
        observer.start()
        todo = list(due)
        while todo:
            now = time.monotonic()
            ready = [reference for reference in todo[:BATCH] if due[reference] <= now]
            if ready:
                waiting.update(ready)
                self.driver.submit(ready)
                del todo[: len(ready)]
            else:
                time.sleep(max(0.0, due[todo[0]] - now))
        observer.join()
        if len(latencies) < count:
            raise RuntimeError(f"{len(latencies)} of {count} tasks of {run} ended")
        return {"latencies": latencies}

    def _observe(
        self, run: str, due: dict[str, float], waiting: set[str], latencies: list[float]
    ) -> None:
        give_up_at = time.monotonic() + PATIENCE
        while len(latencies) < len(due):
            _check(give_up_at, run)
            ended = self.driver.finished(tuple(waiting)) if waiting else ()
            now = time.monotonic()
            latencies.extend((now - due[reference]) * 1000 for reference in ended)
            waiting.difference_update(ended)
            time.sleep(POLL_PACED)


def pause() -> float:
    """Return a random pause between two single tasks, so that they never align with a poll."""
    return random.uniform(0.05, 0.1)  # noqa: S311 - not a secret


def serve(client: Client) -> None:
    """Execute commands from standard input until it ends."""
    commands: dict[str, Callable[..., Answer]] = {
        "backlog": client.backlog,
        "idle": client.idle,
        "paced": client.paced,
    }
    answer({"ready": True})
    for line in sys.stdin:
        command = json.loads(line)
        answer(commands[command.pop("do")](**command))


def answer(values: Answer) -> None:
    """Print one line of JSON."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def _check(give_up_at: float, run: str) -> None:
    if time.monotonic() > give_up_at:
        raise RuntimeError(f"{run} has not ended within {PATIENCE:g} s")
