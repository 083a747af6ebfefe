"""A whole system of its own, as `make run` starts it, and functions to observe and disturb it."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from configparser import RawConfigParser
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import psycopg2  # type: ignore[import-untyped]
from supervisor.xmlrpc import SupervisorTransport

from drill import template
from drill.forks import Forks
from drill.process import Process, end_all, free_port
from drill.process_names import COPIES, SERVERS, SUPERVISORS, processes_named
from drill.servers import Clients
from drill.waiting import wait_for
from sasweb.stack import folders

PROCESSED = "SELECT count(*) FROM orchestration_task WHERE state = 'processed'"
LIVE = "SELECT count(*) FROM orchestration_task WHERE state IN ('pending', 'processing', 'undoing')"
SUBMITTED = "SELECT count(*) FROM orchestration_submission WHERE refused_at IS NULL"
REQUESTED = (
    "SELECT count(*) FROM orchestration_taskrequest WHERE done_at IS NULL AND refused_at IS NULL"
)
UNSENT = "SELECT count(*) FROM orchestration_statusmessage WHERE refused_at IS NULL"
LEFT = f"SELECT ({SUBMITTED}) + ({REQUESTED}) + ({LIVE}) + ({UNSENT})"
LEADER = "SELECT holder FROM orchestration_lease WHERE name = 'supervisor' AND expires_at > now()"
COMMAND_TIMEOUT = 600.0  # seconds
SLOWEST = 25  # orders per second that a stack processes at least, beside other stacks


class Stack(Clients):
    """Runs `python -m sasweb.stack` in a data folder of its own, on ports of its own.

    `environment` adds variables. `demo` adds customers, as `make run` does.
    """

    def __init__(self, name: str, *, demo: bool = False, **environment: str) -> None:
        self.command = [sys.executable, "-m", "sasweb.stack", *(["--demo"] if demo else [])]
        self.folder = folders.data_dir() / name
        self.project = folders.PROJECT
        self.port, self.sandbox_port = free_port(), free_port()
        self.environment = {
            **os.environ,
            "DATA_DIR": str(self.folder),
            "PORT": str(self.port),
            "SANDBOX_PORT": str(self.sandbox_port),
            "SECRET_KEY": "",
            "NICENESS": "0",  # a drill does not test priorities
            "COPIES": str(COPIES),
            "DJANGO_SETTINGS_MODULE": "sasweb.settings",
            **environment,
        }
        self.process: Process | None = None
        self.forks: Forks | None = None
        self.log = self.folder / "run.log"

    # --- life ----------------------------------------------------------------------------------
    def start(self, *, fresh: bool = True) -> "Stack":
        """Start everything and wait until it is ready; `fresh` empties it first."""
        if fresh:
            self.empty()
        before = self.log.stat().st_size if self.log.exists() else 0  # what an earlier run wrote
        process = self.launch()

        def ready() -> bool:
            assert process.poll() is None, "the stack has ended"
            return b"Ready." in self.log.read_bytes()[before:]

        try:
            wait_for(ready, f"the stack is ready; see {self.log}", 90)
        except AssertionError as error:
            self.stop()
            raise AssertionError(f"{error}\n{self.log.read_text()[-5000:]}") from None
        self.forks = Forks(self.inside(), self.log)
        return self

    def empty(self) -> None:
        """Delete the data of an earlier run; begin with that of a stack just set up."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self.environment.get("DATABASE_URL"):
            template.copy_into(folders.make(self.folder))

    def launch(self, **options: Any) -> Process:
        """Start everything without waiting; `options` are those of `subprocess.Popen`."""
        folders.make(self.folder)
        options = {"env": self.environment, "cwd": self.project, **options}
        self.process = Process(self.command, self.log, **options)
        return self.process

    def stop(self) -> None:
        """Stop everything as Ctrl-C does; the data stays. Raise TimeoutExpired after 30 seconds."""
        process, self.process = self.process, None
        forks, self.forks = self.forks, None
        if forks:
            forks.end()
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            finally:
                process.end(signal.SIGKILL)

    def keep(self, name: str) -> None:
        """Move the data and logs of a stopped stack aside, for a look at what went wrong."""
        target = self.folder.with_name("bad") / name.replace(" ", "")
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(exist_ok=True)
        self.folder.rename(target)

    # --- observing -----------------------------------------------------------------------------
    @property
    def configuration(self) -> RawConfigParser:
        """Return the process manager's configuration."""
        parser = RawConfigParser()
        parser.read(self.folder / "supervisord.conf")
        return parser

    @property
    def sockets(self) -> Path:
        """Return the folder of the servers' sockets."""
        return Path(self.configuration["unix_http_server"]["file"]).parent

    def leader(self) -> str:
        """Return the name of the leading supervisor; empty if none of the stack's leads."""
        holder = self.sql(LEADER)
        pid = int(holder[0][0].split(":")[1].split("-")[0]) if holder else 0
        names = [name for name in SUPERVISORS if self.pid(name) == pid]
        return names[0] if names else ""

    def quiet(self, seconds: float = 90) -> None:
        """Wait until no submission, task request, live task or unsent status message is left."""

        def settled() -> bool:
            try:
                return self.count(LEFT) == 0
            except psycopg2.OperationalError:
                return False

        wait_for(settled, "all work has ended", seconds, pause=0.2)

    def processed(self, at_least: int, seconds: float = 60) -> None:
        """Wait until at least this many tasks are processed."""
        wait_for(lambda: self.count(PROCESSED) >= at_least, f"{at_least} are processed", seconds)

    def pid(self, name: str) -> int:
        """Return the id of a process; 0 while it does not run."""
        return int(self.manage("getProcessInfo", name)["pid"])

    # --- disturbing ----------------------------------------------------------------------------
    def manage(self, method: str, name: str = "") -> Any:
        """Call a method of the process manager, for one process if `name` is given."""
        group = "servers" if name in SERVERS else "application"
        transport = SupervisorTransport(None, None, f"unix://{self.sockets}/supervisor.sock")
        with ServerProxy("http://127.0.0.1", transport=transport) as proxy:
            call = getattr(proxy.supervisor, method)
            return call(f"{group}:{name}") if name else call()

    def signal(self, name: str, number: int) -> int:
        """Send a signal to a process once it runs; return its id."""
        pid = wait_for(lambda: self.pid(name), f"{name} runs", 10)  # 0 would be our own group
        os.kill(pid, number)
        return int(pid)

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL; wait at most 2.5 seconds until it is started again."""
        self.wait_for_restart(name, self.signal(name, signal.SIGKILL), 2.5)

    def wait_for_restart(self, name: str, old: int, seconds: float) -> None:
        """Wait until the process manager has replaced the process with the id `old`."""
        wait_for(lambda: self.pid(name) not in {0, old}, f"{name} is started again", seconds)

    @contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """Stop the processes of a name; start them again afterwards."""
        names = processes_named(name)
        for part in names:
            self.manage("stopProcess", part)
        try:
            yield
        finally:
            for part in names:
                self.manage("startProcess", part)

    @contextmanager
    def replaced(
        self, name: str, *, tree: Path = folders.PROJECT, **environment: str
    ) -> Iterator[list[Process]]:
        """Run the processes of a name in another environment instead of the stack's own."""
        with self.stopped(name):
            begun = [self.beside(part, tree=tree, **environment) for part in processes_named(name)]
            try:
                yield begun
            finally:
                # SIGINT: Postgres ends its sessions instead of waiting for them
                end_all(begun, signal.SIGINT if name == "postgres" else signal.SIGTERM, 20)

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        """Suspend the processes of these names with SIGSTOP."""
        parts = [part for name in names for part in processes_named(name)]
        pids = [self.signal(part, signal.SIGSTOP) for part in parts]
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def policy(self, **columns: float) -> None:
        """Set columns of every agent's policy."""
        text = ", ".join(f'"{name}" = %s' for name in columns)
        self.sql(f"UPDATE orchestration_policy SET {text}", *columns.values())

    # --- running -------------------------------------------------------------------------------
    def inside(self, **more: str) -> dict[str, str]:
        """Return the environment of the stack's own processes."""
        key = (self.folder / "secrets" / "secret_key").read_text()
        return {**self.environment, "SECRET_KEY": key, **more}

    def spawn(self, command: Sequence[str], name: str, **environment: str) -> Process:
        """Start a command in the stack's environment, as the process `name`; the caller ends it."""
        return Process(command, self.log, env=self.inside(PROCESS=name, **environment))

    def beside(self, name: str, *, tree: Path = folders.PROJECT, **environment: str) -> Process:
        """Start one more process like `name`, in another environment; the caller ends it.

        `tree` has the files of another release.
        """
        program = self.configuration[f"program:{name}"]
        identity = folders.server_identity() if "user" in program else {}
        variables = self.inside(PROCESS=f"{name}*", **environment)
        return Process(self.command_of(name), self.log, env=variables, **{"cwd": tree, **identity})

    def command_of(self, name: str) -> list[str]:
        """Return the command of a process, as it is given in the folder of a release."""
        command = self.configuration[f"program:{name}"]["command"]
        return shlex.split(command.replace(str(folders.PROJECT / "manage.py"), "manage.py"))

    def run(
        self,
        command: Sequence[str],
        *,
        check: bool = True,
        seconds: float = COMMAND_TIMEOUT,
        tree: Path = folders.PROJECT,
        **environment: str,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end in the stack's environment, in a fork if it is Python's."""
        own = self.forks if tree == folders.PROJECT and not environment else None
        with self.log.open("ab") as log:
            if own and command[0] == sys.executable:
                ended = own.run(command[1:], errors=log, seconds=seconds)
            else:
                ended = subprocess.run(
                    command, env=self.inside(**environment), cwd=tree, stdout=subprocess.PIPE,
                    stderr=log, text=True, check=False, timeout=seconds,
                )  # fmt: skip
        if check:
            ended.check_returncode()
        return ended

    def python(self, module: str, *arguments: str, **options: Any) -> str:
        """Run a module as `run` does; return its output."""
        return self.run([sys.executable, "-m", module, *arguments], **options).stdout

    def place(
        self,
        count: int,
        *,
        card: str = "pm_card_visa",
        also: str = "",
        country: str = "",
        flying: int = 0,
        tree: Path | None = None,
        **environment: str,
    ) -> list[str]:
        """Place orders through the shop's own code, as the checkout does; return their ids.

        `also` is another SKU in each of them.

        Where `flying` is set, place more than `count` until that many are open, if possible.
        """
        options = [str(count), "--card", card, "--flying", str(flying)]
        # the former release knows neither
        options += ["--also", also] if also else []
        options += ["--country", country] if country else []
        seconds = COMMAND_TIMEOUT + count / SLOWEST
        tree = tree or folders.PROJECT
        return self.python(
            "drill.place_orders", *options, seconds=seconds, tree=tree, **environment
        ).split()
