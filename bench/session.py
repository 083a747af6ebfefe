"""One system up and running, and the loads that are put on it."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from bench.client import PATIENCE
from bench.measure import per_task
from bench.stack import Process, Stack, stop_all
from bench.systems import Part, System

_runs = count(1)


class Session:
    """Commands to a system's clients."""

    def __init__(self, stack: Stack, system: System) -> None:
        self.stack, self.system = stack, system
        self.workers: list[Process] = []
        self.clients: list[Process] = []

    def start(self, part: Part, **options: Any) -> Process:
        """Start one of the system's processes."""
        return self.stack.start(
            f"{self.system.name}-{part.kind}",
            part.command,
            env={**self.stack.environment, **part.environment},
            **options,
        )

    def wait_until_ready(self) -> None:
        """Wait for the clients' first words."""
        for client in self.clients:
            self._answer(client)

    def backlog(self, tasks: int) -> tuple[float, dict[str, float]]:
        """Put a backlog on the system; return tasks/s, and ms of CPU per task and kind."""
        calls, before, start = self.stack.calls(), self.cpu(), time.monotonic()
        self._command("backlog", tasks)
        seconds = time.monotonic() - start
        used = per_task(before, self.cpu(), tasks)
        if (made := self.stack.calls() - calls) != 3 * tasks:
            raise RuntimeError(f"{self.system.name} made {made} calls for {tasks} tasks")
        return tasks / seconds, used

    def idle(self, tasks: int) -> list[float]:
        """Return the latencies of tasks one by one, in ms."""
        return self._command("idle", tasks, clients=1)

    def paced(self, tasks: int, rate: float) -> list[float]:
        """Return the latencies of tasks that come at a steady rate, in ms."""
        return self._command("paced", tasks, rate=rate / len(self.clients))

    def cpu(self) -> dict[str, float]:
        """Return seconds of CPU so far by kind of process."""
        parts = [*self.system.workers, *self.system.clients]
        found = dict.fromkeys((part.kind for part in parts), 0.0)
        for part, process in zip(parts, [*self.workers, *self.clients], strict=True):
            found[part.kind] += process.cpu()
        return found | self.stack.cpu()

    def memory(self) -> float:
        """Return the peak memory of the system's own processes, in MB."""
        return sum(process.memory() for process in self.workers or self.clients)

    def _command(self, do: str, tasks: int, clients: int = 0, **extra: float) -> list[float]:
        asked = self.clients[: clients or None]
        for number, client in enumerate(asked):
            share = tasks // len(asked) + (number < tasks % len(asked))
            run = f"{self.system.name}-{next(_runs)}"
            command = {"do": do, "run": run, "count": share}
            assert client.popen.stdin
            client.popen.stdin.write(json.dumps(command | extra).encode() + b"\n")
            client.popen.stdin.flush()
        latencies: list[float] = []
        for client in asked:
            latencies += self._answer(client).get("latencies", [])
        return latencies

    def _answer(self, client: Process) -> dict[str, Any]:
        assert client.popen.stdout
        alarm = threading.Timer(PATIENCE + 30, client.popen.kill)
        alarm.start()
        line = client.popen.stdout.readline()
        alarm.cancel()
        if not line:
            raise RuntimeError(f"a client of {self.system.name} has ended: see {self.stack.logs}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def session(stack: Stack, system: System) -> Iterator[Session]:
    """Run a system for as long as the block lasts, on a machine that has nothing else to do."""
    stack.clear_sandbox()
    stack.redis().flushall()
    running = Session(stack, system)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    try:
        for part in system.workers:
            running.workers.append(running.start(part))
        for part in system.clients:
            running.clients.append(running.start(part, **pipes))
        running.wait_until_ready()
        yield running
    finally:
        stop_all([*running.clients, *running.workers])
    if system.database:
        stack.tidy(system.database)
