"""Drives one system: posts tasks, watches for their ends, tells what it saw.

Every system is driven by this module, in a process of its own that takes commands as lines of JSON
and answers each with a line of JSON; so all are timed alike. It runs in the project's environment
and in the peers', and needs nothing but the standard library.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

BATCH = 500  # tasks posted at once where a backlog is wanted
POLL = 0.002  # seconds between two looks for tasks that ended
POLL_PACED = 0.005  # the same where there are many: looking costs CPU that the system needs
POLL_BACKLOG = 0.01
PATIENCE = 240.0  # seconds after which a run counts as stuck

Answer = dict[str, Any]


class Driver(Protocol):
    """What a system must offer to be driven."""

    def submit(self, references: Sequence[str]) -> None:
        """Post one task per reference, in the system's most durable and least costly way."""

    def finished(self, references: Iterable[str]) -> set[str]:
        """Return those of the references whose tasks are known to have ended."""

    def settled(self, run: str, count: int) -> bool:
        """Say whether all `count` tasks of a run have ended; raise RuntimeError if any failed."""


class Client:
    """The three ways to load a system. All references of a run begin with its name."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def backlog(self, run: str, count: int) -> Answer:
        """Post `count` tasks as fast as they are taken, and wait for the last one's end."""
        references = [f"{run}-{number}" for number in range(count)]
        give_up_at = time.monotonic() + PATIENCE
        for start in range(0, count, BATCH):
            self.driver.submit(references[start : start + BATCH])
        while not self.driver.settled(run, count):
            _check(give_up_at, run)
            time.sleep(POLL_BACKLOG)
        return {}

    def idle(self, run: str, count: int) -> Answer:
        """Post one task at a time, each when the one before has ended; return latencies in ms."""
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
        """Post `rate` tasks per second; return latencies in ms, from when each was due.

        What is due is posted, whether or not the system keeps up: a system that falls behind shows
        it, and a client that does charges it to the system.
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
            raise RuntimeError(f"{len(latencies)} of {count} tasks of {run} were seen to end")
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
    """Return seconds to rest between two single tasks; uneven, so as not to beat with any poll."""
    return random.uniform(0.05, 0.1)  # noqa: S311 - not a secret


def serve(client: Client) -> None:
    """Carry out commands from standard input until it ends."""
    commands: dict[str, Callable[..., Answer]] = {
        "backlog": client.backlog,
        "idle": client.idle,
        "paced": client.paced,
    }
    say({"ready": True})
    for line in sys.stdin:
        command = json.loads(line)
        say(commands[command.pop("do")](**command))


def say(answer: Answer) -> None:
    """Answer with one line."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _check(give_up_at: float, run: str) -> None:
    if time.monotonic() > give_up_at:
        raise RuntimeError(f"{run} has not ended within {PATIENCE:g} s")
