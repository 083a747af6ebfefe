"""A clone of the project: starts, uses and stops it, and looks for leftovers."""

import os
import pty
import pwd
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.measure import memory
from drill.process import free_port
from drill.shopper import Shopper
from drill.waiting import wait_for
from sasweb.stack.folders import PROJECT

SHARED = ("/tmp", "/var/tmp", "/var/lib", "/dev/shm", "/run")
PASSED = ("PATH", "LANG", "PIP_", "SSL_")  # prefixes of variables that the machine itself needs


@dataclass
class Figures:
    """Measurements of one start: seconds, and MB."""

    ready: float
    ordered: float
    memory: float
    stopped: float


@dataclass
class Output:
    """The output of a start."""

    text: str = ""
    readers: list[threading.Thread] = field(default_factory=list)

    def read(self, descriptor: int) -> None:
        """Collect what comes, until the other end is closed."""

        def collect() -> None:
            with suppress(OSError):  # a terminal that is left
                while data := os.read(descriptor, 65_536):
                    self.text += data.decode(errors="replace")

        self.readers.append(threading.Thread(target=collect, daemon=True))
        self.readers[-1].start()


class Place:
    """A clone in `folder`, used by `user` (root if None) with one Python."""

    def __init__(self, home: Path, python: str, user: str | None, below: str = "project") -> None:
        home.mkdir(0o700)
        self.home, self.folder, self.python, self.user = home, home / below, python, user
        self.port, self.sandbox_port = free_port(), free_port()
        subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(self.folder)], check=True)
        if user:
            subprocess.run(["chown", "-R", user, str(home)], check=True)

    def run(self, *command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in the clone to its end."""
        return subprocess.run(
            command, cwd=self.folder, env=self._environment(**environment), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **self._identity(),
        )  # fmt: skip

    def _environment(self, **more: str) -> dict[str, str]:
        passed = {name: value for name, value in os.environ.items() if name.startswith(PASSED)}
        ports = {"PORT": str(self.port), "SANDBOX_PORT": str(self.sandbox_port)}
        return passed | {"HOME": str(self.home)} | ports | more

    def _identity(self) -> dict[str, object]:
        if not self.user:
            return {}
        entry = pwd.getpwnam(self.user)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}

    def make(self, target: str) -> list[str]:
        """Return the command that makes a target with this place's Python."""
        return ["make", target, f"PYTHON={self.python}"]

    @contextmanager
    def running(self, onto: str = "pipe", **environment: str) -> "Iterator[Output]":
        """Run `make run`, with its output onto a pipe, socket, terminal or file, until it is left."""
        output = Output()
        with _open(onto, output) as stdout:
            process = subprocess.Popen(
                self.make("run"), cwd=self.folder, env=self._environment(**environment),
                stdin=subprocess.DEVNULL, stdout=stdout, stderr=stdout,
                start_new_session=True, **self._identity(),
            )  # fmt: skip
        self.pid = process.pid
        try:
            yield output
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(60)

    def try_it(self, onto: str = "pipe", **environment: str) -> tuple[Figures, str]:
        """Start, order, and stop; return the figures, and what was printed."""
        began = time.monotonic()
        with self.running(onto, **environment) as output:
            self.ready(output)
            ready = time.monotonic() - began
            ordered = self.order()
            used = memory(self.pid)
            began = time.monotonic()
        stopped = time.monotonic() - began
        self.require_no_process()
        return Figures(ready, ordered, used, stopped), output.text

    def ready(self, output: Output) -> None:
        """Wait until the stack says that it is ready."""

        def printed() -> bool:
            gone = not Path(f"/proc/{self.pid}/exe").exists()
            assert not gone, f"it ended:\n{output.text[-3000:]}"
            return "Ready." in output.text and "the data stays" in output.text

        wait_for(printed, f"it is ready; it printed:\n{output.text[-3000:]}", 300, pause=0.05)

    def order(self) -> float:
        """Order something in the shop; return the seconds until the page says that it is confirmed."""
        began = time.monotonic()
        shopper = Shopper(self.port)
        order = shopper.buy()
        page = f"/orders/{order}/"

        def confirmed() -> bool:
            shown = shopper.look(page)
            return 'data-final="yes"' in shown and "confirmed" in shown

        wait_for(confirmed, "it is confirmed", 30, pause=0.1)
        return time.monotonic() - began

    def require_no_process(self) -> None:
        """Fail if a process of this place is left."""
        wait_for(lambda: not self.processes(), f"no process is left: {self.processes()}", 15)

    def processes(self) -> list[str]:
        """Return the commands of processes that have to do with the clone or its data."""
        commands = []
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                with suppress(OSError):
                    command = (process / "cmdline").read_bytes()
                    where = bytes((process / "cwd").readlink())
                    if any(str(self.folder).encode() in text for text in (command, where)):
                        commands.append(command.replace(b"\0", b" ").decode(errors="replace"))
        return commands


def left_over(before: set[str]) -> list[str]:
    """Return the new entries of shared folders."""
    return sorted(shared() - before)


def shared() -> set[str]:
    """Return the entries of the folders that all users share."""
    return {
        str(path) for folder in SHARED if Path(folder).is_dir() for path in Path(folder).iterdir()
    }


@contextmanager
def _open(onto: str, output: Output) -> Iterator[int]:
    """Give a file descriptor of a kind; what is written to it comes into `output`."""
    match onto:
        case "pipe":
            reader, writer = os.pipe()
        case "terminal":
            reader, writer = pty.openpty()
        case "socket":
            own, other = socket.socketpair()
            reader, writer = own.detach(), other.detach()
        case "file":  # of root, which no other user can open
            path = Path(f"/root/.sas-machines-{os.getpid()}.log")
            writer = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
            reader = os.open(path, os.O_RDONLY)
            path.unlink()
        case _:
            raise ValueError(onto)
    if onto == "file":
        thread = threading.Thread(target=_follow, args=(reader, output), daemon=True)
        thread.start()
    else:
        output.read(reader)
    try:
        yield writer
    finally:
        os.close(writer)


def _follow(reader: int, output: Output) -> None:
    """Collect what is written to a file, as long as this process lives."""
    while True:
        output.text += os.read(reader, 65_536).decode(errors="replace")
        time.sleep(0.05)


@contextmanager
def ordinary_user(home: Path) -> Iterator[str]:
    """Give an ordinary user with a home of its own, for a while."""
    name = f"sas{os.getpid()}"
    subprocess.run(["useradd", "--no-create-home", "--home-dir", str(home), name], check=True)
    try:
        yield name
    finally:
        subprocess.run(["userdel", name], check=True)
