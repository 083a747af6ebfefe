"""Child processes that never outlive the drill, benchmark or test that starts them."""

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol

from sasweb.stack import folders

PDEATHSIG = 1  # of prctl(2)
_libc = ctypes.CDLL(None)


def free_port() -> int:
    """Return a TCP port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process(subprocess.Popen[bytes]):
    """A child process in a session of its own, with its output appended to `log`.

    The session keeps Ctrl-C away from it: the parent stops it. If the thread that started it ends
    first, the kernel sends SIGTERM (Linux).
    """

    def __init__(self, command: Sequence[str], log: Path, **options: Any) -> None:
        with log.open("ab") as output:
            super().__init__(
                command,
                start_new_session=True,
                preexec_fn=_end_with_parent,
                **{"cwd": folders.PROJECT, "stdout": output, "stderr": output, **options},
            )

    def end(self, number: int = signal.SIGTERM, seconds: float = 20.0) -> None:
        """Send a signal and wait; then kill what is left of the session."""
        if self.poll() is None:
            self.send_signal(number)
        self.reap(time.monotonic() + seconds)

    def reap(self, deadline: float) -> None:
        """Wait for the process until `deadline` (monotonic), then kill what is left of its session."""
        try:
            with suppress(subprocess.TimeoutExpired):
                self.wait(max(0.0, deadline - time.monotonic()))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.wait()


def require_running(processes: Iterable[Process]) -> None:
    """Raise RuntimeError if one of the processes has ended."""
    if ended := [process.args for process in processes if process.poll() is not None]:
        raise RuntimeError(f"these processes have ended by themselves: {ended}")


class Ending(Protocol):
    """What can be ended: a process, or a fork of another."""

    def poll(self) -> int | None:
        """Return how it ended; None while it runs."""

    def send_signal(self, number: int, /) -> None:
        """Send it a signal."""

    def reap(self, deadline: float) -> None:
        """Wait for it until `deadline` (monotonic), then kill it."""


def end_all(
    processes: Iterable[Ending], number: int = signal.SIGTERM, seconds: float = 5.0
) -> None:
    """Send a signal to all, then wait for each until the same deadline."""
    with ExitStack() as cleanup:
        deadline = time.monotonic() + seconds
        for process in processes:
            cleanup.callback(process.reap, deadline)
            if process.poll() is None:
                process.send_signal(number)


def _end_with_parent() -> None:
    _libc.prctl(PDEATHSIG, signal.SIGTERM)
