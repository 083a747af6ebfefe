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
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO

from drill.process import Process

LOADED = ("orchestration.assurance.management.commands.audit", "orders.lifecycle.placement")


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
        status, theirs = socket.socketpair()
        with status, tempfile.TemporaryFile("w+") as output:
            with theirs:
                files = [theirs.fileno(), output.fileno(), errors.fileno()]
                socket.send_fds(self._requests, [json.dumps(arguments).encode()], files)
            status.settimeout(seconds)
            try:
                code = int(status.recv(16))
            except TimeoutError:
                raise subprocess.TimeoutExpired(list(arguments), seconds) from None
            output.seek(0)
            return subprocess.CompletedProcess(list(arguments), code, output.read())

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
                _report(json.loads(request), *files)
            for file in files:
                os.close(file)


def _report(arguments: list[str], status: int, output: int, errors: int) -> None:
    """Write how `python ARGUMENTS` ended, and end this process. Does not return."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if not (command := os.fork()):
            os.close(status)
            os.dup2(output, 1)
            os.dup2(errors, 2)
            _become(arguments)
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
