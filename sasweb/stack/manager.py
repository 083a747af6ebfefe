"""The process manager: supervisord, with every Python program of the stack begun in its memory.

supervisord starts a program by fork and exec. Here a Python program goes on in the fork, with Django
and all our code loaded already, and shared until it is written to: that takes a third of the memory,
and a process that died is at work again at once. On macOS, whose libraries do not outlive a fork, or
with PRELOAD=0, each program is a Python of its own.
"""

import contextlib
import ctypes
import gc
import logging
import os
import runpy
import select
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.template import engines
from django.urls import get_resolver
from django.utils import translation
from django.utils.module_loading import import_string
from setproctitle import setproctitle
from supervisor import events, poller
from supervisor.medusa import asyncore_25 as asyncore
from supervisor.options import ServerOptions
from supervisor.states import SupervisorStates
from supervisor.supervisord import Supervisor

from orchestration.cluster import instance
from orchestration.tracing import switch

from .. import env, log
from .processes import SETUP

logger = logging.getLogger(__name__)

# What the programs of the stack import, besides the applications themselves.
MODULES = (
    "gunicorn.app.wsgiapp",
    "gunicorn.workers.gthread",
    "sandbox.server",
    "sasweb.stack.setup",
    "sasweb.urls",
)
COMMANDS = {
    *("work", "supervisor", "housekeeper"),
    *("migrate", "seed", "collectstatic", "demo_traffic", "demo_orders"),
}
HANDLED_SIGNALS = ("TERM", "INT", "QUIT", "HUP", "CHLD", "USR2")  # signals that supervisord handles
SHORTEST = 1.0  # seconds that a failing program takes at least: it is started again at once
SOON = 0.05  # seconds between two looks at what is to stop
LONGEST_LINE = 65_536  # bytes; what is longer is shown in parts
LONGEST_BACKLOG = 1_000_000  # bytes that wait for a reader of our output; beyond it, older ones go
PDEATHSIG = 1  # of prctl(2)


def run(file: Path) -> bool:
    """Run the programs of a configuration until SIGINT or SIGTERM; return whether the setup succeeded."""
    preload = env.flag("PRELOAD", default=sys.platform == "linux")
    if preload:
        _load_everything()
    options = Options(preload=preload)
    options.realize(["--configuration", str(file)])
    options.first, options.test = True, False
    manager = Manager(options)
    with contextlib.suppress(asyncore.ExitNow):
        manager.main()
    return manager.set_up


def _load_everything() -> None:
    """Load what the programs of the stack need, and have the collector leave it alone.

    A collection writes to every object that it looks at, which would give each process a copy.
    """
    for module in MODULES:
        import_module(module)
    if switch.ON:
        import_module("orchestration.tracing.export")
    for middleware in settings.MIDDLEWARE:  # not made yet: they look for files that are to come
        import_string(middleware)
    for name, app in get_commands().items():
        if name in COMMANDS:
            load_command_class(app, name)
    for language, _name in settings.LANGUAGES:
        with translation.override(language):
            translation.gettext("Hello")
    engines.all()
    _ = get_resolver().reverse_dict
    gc.collect()
    gc.freeze()


class Poller(poller.Poller):  # type: ignore[misc]
    """Wakes up for signals as well as for files.

    Python goes on waiting after a signal: supervisord would reap a process, or begin to stop, up to
    a second later.
    """

    def __init__(self, options: "Options") -> None:
        super().__init__(options)
        self._signals, writer = os.pipe()
        for end in (self._signals, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self.register_readable(self._signals)

    def poll(self, timeout: float) -> tuple[list[int], list[int]]:
        """Wait for files to be ready, at most `timeout` seconds; return those to read and to write."""
        stopping = self.options.mood < SupervisorStates.RUNNING
        read, write = super().poll(SOON if stopping else timeout)
        self.options.output.flush()
        if self._signals in read:
            read.remove(self._signals)
            os.read(self._signals, 1024)
        return read, write


class Options(ServerOptions):  # type: ignore[misc]
    """supervisord's options, and its system calls."""

    def __init__(self, *, preload: bool) -> None:
        super().__init__()
        self.output = Output()
        self.poller = Poller(self)
        self.preload = preload
        self.manager = os.getpid()

    def setsignals(self) -> None:
        """Handle signals; one that was ignored at the start, as under nohup, stays ignored."""
        ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        super().setsignals()
        if ignored:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def execve(self, filename: str, argv: Sequence[str], environment: dict[str, str]) -> None:
        """Become a program, in a new process whose files and user are set already."""
        signal.set_wakeup_fd(-1)
        for (
            name
        ) in HANDLED_SIGNALS:  # a signal must end this process now, not be noted for the manager
            signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_DFL)
        os.nice(int(environment.get("NICENESS", 0)))
        python = filename == sys.executable
        if python and self.preload:
            _end_with(self.manager, signal.SIGTERM)
            _become(argv[1:], environment)
        _end_with(self.manager, signal.SIGTERM if python else signal.SIGINT)  # quick for a server
        super().execve(filename, argv, environment)


def _end_with(manager: int, number: signal.Signals) -> None:
    """Have this process get a signal when the manager ends, however it ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PDEATHSIG, number)
        if os.getppid() != manager:  # it has ended before
            os.kill(os.getpid(), number)


def _become(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run `python ARGUMENTS` in this process, and end it. Does not return."""
    began = time.monotonic()
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        os.environ.clear()
        os.environ.update(environment)
        setproctitle(f"sas {environment['PROCESS']}")
        program, *rest = arguments
        if program == "-m":
            sys.argv = rest
            sys.modules.pop(rest[0], None)  # runpy warns of one that is preloaded
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:  # manage.py, without what Django does once in each Python
            call_command(*rest)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except CommandError as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
    except BaseException:  # noqa: BLE001 - it ends this process and not the manager
        traceback.print_exc()
    finally:
        try:
            if code and environment["PROCESS"] != SETUP:
                time.sleep(max(0.0, began + SHORTEST - time.monotonic()))
            instance.end(code)
        finally:  # never back into the manager's code
            os._exit(code or 1)


class Output:
    """Our own standard output, which may be anything, and is never waited for.

    It is not opened anew: it may be a socket, or a file of another user. If it is closed, the stack
    goes on without it; each process has a log file.
    """

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._open = True
        self._waiting = b""

    def write(self, data: bytes) -> None:
        """Write what there is room for; the rest waits."""
        self._waiting = (self._waiting + data)[-LONGEST_BACKLOG:]
        self.flush()

    def flush(self) -> None:
        """Write as much of what waits as there is room for."""
        while self._waiting and self._open and select.select([], [self._descriptor], [], 0)[1]:
            try:
                count = os.write(self._descriptor, self._waiting[: select.PIPE_BUF])
            except BlockingIOError:
                return
            except OSError:
                self._open = False
            else:
                self._waiting = self._waiting[count:]


class ToOutput(logging.Handler):
    """Puts the manager's own lines among those of the processes."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self.setFormatter(log.formatter())
        self._output = output

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        self._output.write(f"{self.format(record)}\n".encode())


class Manager(Supervisor):  # type: ignore[misc]
    """supervisord, showing what its programs print, line by line, on our own output."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        logger.addHandler(ToOutput(options.output))
        logger.propagate = False
        self.set_up = True
        self._begun: dict[str, bytes] = defaultdict(bytes)  # incomplete lines

    def runforever(self) -> None:
        """Serve, after taking part in what happens."""
        events.subscribe(events.ProcessLogEvent, self._show)
        events.subscribe(events.ProcessStateExitedEvent, self._note_end)
        events.subscribe(events.ProcessStateFatalEvent, self._note_end)
        events.subscribe(events.SupervisorStoppingEvent, self._note_stop)
        super().runforever()

    def _note_stop(self, _event: Any) -> None:
        self.options.output.write("\nStopping …\n".encode())

    def _note_end(self, event: Any) -> None:
        """Say what is started again; stop everything when it cannot be set up."""
        process = event.process
        if rest := self._begun.pop(process.config.name, b""):
            self.options.output.write(rest + b"\n")
        if process.config.name == SETUP and (process.exitstatus or process.spawnerr):
            self.set_up = False
            self.options.mood = SupervisorStates.SHUTDOWN
        elif process.config.autorestart and self.options.mood == SupervisorStates.RUNNING:
            name, status = process.config.name, process.exitstatus
            how = "by a signal" if status == -1 else f"with status {status}"
            logger.warning("%s ended %s: it is started again", name, how, extra={"worker": name})

    def _show(self, event: Any) -> None:
        name = event.process.config.name
        lines, end, rest = (self._begun[name] + event.data).rpartition(b"\n")
        if len(rest) > LONGEST_LINE:
            lines, end, rest = lines + end + rest, b"\n", b""
        self._begun[name] = rest
        self.options.output.write(lines + end)
