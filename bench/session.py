"""One running system, and the loads on it."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from bench.client import PATIENCE
from bench.measure import cpu_seconds, peak_memory, per_task
from bench.systems import ENGINE, Part, System
from bench.testbed import Testbed
from drill.process import Process, end_all, require_running

_runs = count(1)


class Session:
    """A running system: its workers, and its clients, which take commands."""

    def __init__(self, bed: Testbed, system: System) -> None:
        self.bed, self.system = bed, system
        self.workers: list[Process] = []
        self.clients: list[Process] = []
        self.repeated = 0  # calls of a peer that were made more than once

    def start(self, part: Part, **options: Any) -> Process:
        """Start one of the system's processes."""
        return self.bed.process(
            f"{self.system.name}-{part.kind}",
            part.command,
            env={**self.bed.environment, **part.environment},
            **options,
        )

    def wait_until_ready(self) -> None:
        """Wait until every client is ready."""
        for client in self.clients:
            self._answer(client)

    def backlog(self, tasks: int) -> tuple[float, dict[str, float]]:
        """Process a backlog; return tasks/s, and ms of CPU per task and kind of process."""
        calls, before, start = self.bed.calls(), self.cpu(), time.monotonic()
        self._command("backlog", tasks)
        seconds = time.monotonic() - start
        used = per_task(before, self.cpu(), tasks)
        expected = self.system.calls * tasks
        repeated = self.bed.calls() - calls - expected
        if repeated < 0 or (repeated and self.system.family == ENGINE):
            raise RuntimeError(
                f"{self.system.name} made {expected + repeated} calls for {tasks} tasks"
            )
        self.repeated += repeated
        return tasks / seconds, used

    def idle(self, tasks: int) -> list[float]:
        """Return the latencies in ms of tasks that run one at a time."""
        return self._command("idle", tasks, clients=1)

    def paced(self, tasks: int, rate: float) -> list[float]:
        """Return the latencies in ms of tasks submitted at a steady rate."""
        return self._command("paced", tasks, rate=rate / len(self.clients))

    def cpu(self) -> dict[str, float]:
        """Return seconds of CPU so far, by kind of process."""
        parts = [*self.system.workers, *self.system.clients]
        seconds = dict.fromkeys((part.kind for part in parts), 0.0)
        for part, process in zip(parts, [*self.workers, *self.clients], strict=True):
            seconds[part.kind] += cpu_seconds(process.pid)
        return seconds | self.bed.cpu()

    def memory(self) -> float:
        """Return the peak memory of the system's own processes, in MB."""
        return sum(peak_memory(process.pid) for process in self.workers or self.clients)

    def _command(self, do: str, tasks: int, clients: int = 0, **extra: float) -> list[float]:
        asked = self.clients[: clients or None]
        for number, client in enumerate(asked):
            share = tasks // len(asked) + (number < tasks % len(asked))
            run = f"{self.system.name}-{next(_runs)}"
            command = {"do": do, "run": run, "count": share}
            assert client.stdin
            client.stdin.write(json.dumps(command | extra).encode() + b"\n")
            client.stdin.flush()
        latencies: list[float] = []
        for client in asked:
            latencies += self._answer(client).get("latencies", [])
        return latencies

    def _answer(self, client: Process) -> dict[str, Any]:
        assert client.stdout
        alarm = threading.Timer(PATIENCE + 30, client.kill)
        alarm.daemon = True  # a benchmark that is interrupted here ends at once
        alarm.start()
        line = client.stdout.readline()
        alarm.cancel()
        require_running(self.workers)
        if not line:
            raise RuntimeError(f"a client of {self.system.name} has ended: see {self.bed.logs}")
        return dict(json.loads(line))


@contextmanager
def session(bed: Testbed, system: System) -> Iterator[Session]:
    """Run a system alone on the testbed."""
    bed.clear()
    running = Session(bed, system)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    try:
        for part in system.workers:
            running.workers.append(running.start(part))
        for part in system.clients:
            running.clients.append(running.start(part, **pipes))
        running.wait_until_ready()
        yield running
    finally:
        end_all([*running.clients, *running.workers])
    if system.database:
        bed.vacuum(system.database)
