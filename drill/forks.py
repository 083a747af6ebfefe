"""Runs commands in forks of a process that has the project loaded, which takes a new Python a second."""

import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from drill.process import Process

LOADED = ("orchestration.assurance.management.commands.audit", "orders.lifecycle.placement")


class Fork:
    """A command that runs in a fork, with those methods of a `Process` that end it."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self.pid = int(status.recv(16))
        self.returncode: int | None = None

    def wait(self, seconds: float) -> int:
        """Return how it ended; raise TimeoutError after `seconds`."""
        if self.returncode is None:
            self._status.settimeout(seconds)
            self.returncode = int(self._status.recv(16))
            self._status.close()
        return self.returncode

    def poll(self) -> int | None:
        """Return how it ended; None while it runs."""
        with suppress(BlockingIOError):
            return self.wait(0)
        return None

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def reap(self, deadline: float) -> None:
        """Wait for it until `deadline` (monotonic), then kill it."""
        try:
            self.wait(max(0.01, deadline - time.monotonic()))
        except TimeoutError:
            self.send_signal(signal.SIGKILL)
            self.wait(5.0)


class Forks:
    """The process that forks, in an environment of its own; `log` takes what commands write to stderr."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self._requests, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with inner:
            number = inner.fileno()
            command = [sys.executable, "-m", "drill.forks", str(number)]
            self._process = Process(command, log, env=environment, pass_fds=[number])

    def run(
        self, arguments: Sequence[str], *, errors: IO[bytes], seconds: float
    ) -> "subprocess.CompletedProcess[str]":
        """Run `python ARGUMENTS` to its end; raise TimeoutExpired after `seconds`."""
        with tempfile.TemporaryFile("w+") as output:
            command = self.start(arguments, output=output, errors=errors)
            try:
                code = command.wait(seconds)
            except TimeoutError:
                command.reap(time.monotonic())
                raise subprocess.TimeoutExpired(list(arguments), seconds) from None
            output.seek(0)
            return subprocess.CompletedProcess(list(arguments), code, output.read())

    def start(
        self, arguments: Sequence[str], *, output: IO[Any], errors: IO[bytes], **environment: str
    ) -> Fork:
        """Start `python ARGUMENTS` with more variables."""
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            files = [theirs.fileno(), output.fileno(), errors.fileno()]
            request = json.dumps([arguments, environment]).encode()
            socket.send_fds(self._requests, [request], files)
        return Fork(status)

    def end(self) -> None:
        """End the process, and the commands that run."""
        self._requests.close()
        self._process.end()


def main(number: int) -> None:
    """Fork for each request on the socket that has this number."""
    import django

    django.setup()
    for module in LOADED:
        import_module(module)
    gc.freeze()  # the forks share what is loaded
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for those below
    with socket.socket(fileno=number) as requests:
        while True:
            request, files, _flags, _address = socket.recv_fds(requests, 65_536, 3)
            if os.fork() == 0:
                _report(*json.loads(request), *files)
            for file in files:
                os.close(file)


def _report(
    arguments: list[str], environment: dict[str, str], status: int, output: int, errors: int
) -> None:
    """Write the id of `python ARGUMENTS`, then how it ended, and end this process. Does not return."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if not (command := os.fork()):
            os.close(status)
            os.dup2(output, 1)
            os.dup2(errors, 2)
            os.environ.update(environment)
            _become(arguments)
        os.write(status, str(command).encode())
        _pid, ended = os.waitpid(command, 0)
        os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())
    finally:
        os._exit(0)


def _become(arguments: list[str]) -> None:
    """Run `python ARGUMENTS` in this process, and end it. Does not return."""
    code = 1
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            runpy.run_path(arguments[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - it ends this process and no other
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
