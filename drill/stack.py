"""A whole system of its own, as `make run` starts it, and the means to look at it."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from configparser import RawConfigParser
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import psycopg2  # type: ignore[import-untyped]
import redis
from supervisor.xmlrpc import SupervisorTransport

from drill.waiting import wait_for
from sasweb.stack import folders

PROCESSED = "SELECT count(*) FROM orchestration_task WHERE state = 'processed'"
LIVE = "SELECT count(*) FROM orchestration_task WHERE state IN ('pending', 'processing', 'undoing')"
POSTED = "SELECT count(*) FROM orchestration_submission WHERE refused_at IS NULL"
ASKED = (
    "SELECT count(*) FROM orchestration_taskrequest WHERE done_at IS NULL AND refused_at IS NULL"
)
TOLD = "SELECT count(*) FROM orchestration_statusmessage WHERE refused_at IS NULL"
SERVERS = {"postgres", "redis"}
QUITS = {"postgres": signal.SIGINT}  # ends its sessions, and does not wait for them
WORKERS = (
    "work-submission", "work-scheduler-1", "work-scheduler-2", "work-inventory", "work-payment-1",
    "work-payment-2", "work-shipping", "work-notification", "work-status.shop", "work-alerts",
    "work-audit", "work-push",
)  # fmt: skip
SUPERVISORS = ("supervisor-1", "supervisor-2")
HOUSEKEEPER = "housekeeper"
LEADERS = (*SUPERVISORS, HOUSEKEEPER)  # of each kind one leads
COMMAND = 600.0  # seconds that a command in a stack may take
SLOWEST = 25  # orders per second that a stack takes and works on, beside others
POSTGRES_SOCKET, REDIS_SOCKET = ".s.PGSQL.5432", "redis.sock"


def serving(name: str) -> tuple[str, ...]:
    """Return the processes of a stack that are meant by a name: "work-payment" are two, say."""
    several = (one for one in (*WORKERS, *SUPERVISORS) if one.rpartition("-")[0] == name)
    return tuple(several) or (name,)


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Stack:
    """Starts `python -m sasweb.stack` in a data folder of its own; `environment` adds variables.

    With `demo`, as `make run` does, which has customers.
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
            "NICENESS": "0",  # what is drilled is not who gets the processor first
            "DJANGO_SETTINGS_MODULE": "sasweb.settings",
            **environment,
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.log = self.folder / "run.log"
        self.postgres_port = 5432  # of the socket's name; another while a proxy has that name

    # --- life ----------------------------------------------------------------------------------
    def start(self, *, fresh: bool = True) -> "Stack":
        """Start everything and wait until it is ready; `fresh` forgets what a former run left."""
        if fresh:
            shutil.rmtree(self.folder, ignore_errors=True)
        folders.make(self.folder)
        with self.log.open("ab") as log:
            before = log.tell()  # what an earlier start said
            self.process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.project,
                start_new_session=True,
            )
        try:
            wait_for(lambda: self._ready(before), f"the stack is ready; see {self.log}", 90)
        except AssertionError:
            self.stop()
            raise AssertionError(self.log.read_text()[-5000:]) from None
        return self

    def _ready(self, before: int) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()[-5000:]
        return b"Ready." in self.log.read_bytes()[before:]

    def stop(self) -> None:
        """Stop everything, as Ctrl-C does; the data stays."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)
            self.process = None

    def keep(self, name: str) -> None:
        """Keep all of what went wrong, database and logs, once stopped: the next start has a new folder."""
        kept = self.folder.with_name("bad") / name.replace(" ", "")
        shutil.rmtree(kept, ignore_errors=True)
        kept.parent.mkdir(exist_ok=True)
        self.folder.rename(kept)

    # --- looking -------------------------------------------------------------------------------
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

    def connect(self) -> Any:
        """Return a connection to Postgres, past every proxy."""
        return psycopg2.connect(
            dbname="sas",
            user="postgres",
            host=str(self.sockets),
            port=self.postgres_port,
            application_name="drill",
        )

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement in a transaction of its own; return its rows."""
        connection = self.connect()
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(statement, parameters)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def count(self, statement: str, *parameters: object) -> int:
        """Return the one number that a statement asks for."""
        return int(self.sql(statement, *parameters)[0][0])

    def answers(self) -> bool:
        """Say whether Postgres takes statements."""
        try:
            return self.count("SELECT 1") == 1
        except psycopg2.Error:
            return False

    @contextmanager
    def redis(self) -> Iterator[redis.Redis]:
        """Give a client of Redis, past every proxy."""
        behind = self.sockets / f"{REDIS_SOCKET}.real"
        socket_path = behind if behind.exists() else self.sockets / REDIS_SOCKET
        with redis.Redis(unix_socket_path=str(socket_path)) as client:
            yield client

    def sandbox(self, path: str, body: object = None, method: str = "GET") -> Any:
        """Ask the sandbox; return its JSON."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.sandbox_port}{path}",
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - our own sandbox
            return json.load(response)

    def leader(self) -> str:
        """Return the name of the supervisor that leads now; empty if it is none of the stack's."""
        holder = self.sql(
            "SELECT holder FROM orchestration_lease WHERE name = 'supervisor' AND expires_at > now()"
        )
        pid = int(holder[0][0].split(":")[1].split("-")[0]) if holder else 0
        names = [name for name in SUPERVISORS if self.pid(name) == pid]
        return names[0] if names else ""

    def quiet(self, seconds: float = 90) -> None:
        """Wait until nothing is posted, asked for, live or untold."""

        def settled() -> bool:
            try:
                return not any(self.count(statement) for statement in (POSTED, ASKED, LIVE, TOLD))
            except psycopg2.OperationalError:
                return False

        wait_for(settled, "everything has come to an end", seconds, pause=0.2)

    def in_flight(self, at_least: int = 1, seconds: float = 20) -> None:
        """Wait until so many tasks are in flight."""
        wait_for(lambda: self.count(LIVE) >= at_least, f"{at_least} tasks are in flight", seconds)

    def processed(self, at_least: int, seconds: float = 60) -> None:
        """Wait until so many tasks are processed."""
        wait_for(lambda: self.count(PROCESSED) >= at_least, f"{at_least} are processed", seconds)

    @property
    def audits(self) -> bool:
        """Say whether this version has the auditor."""
        return (folders.PROJECT / "orchestration/management/commands/audit.py").exists()

    # --- acting --------------------------------------------------------------------------------
    def manage(self, act: str, name: str = "") -> Any:
        """Have the process manager do something: with one process, or in general."""
        group = "servers" if name in SERVERS else "application"
        transport = SupervisorTransport(None, None, f"unix://{self.sockets}/supervisor.sock")
        with ServerProxy("http://127.0.0.1", transport=transport) as proxy:
            call = getattr(proxy.supervisor, act)
            return call(f"{group}:{name}") if name else call()

    def pid(self, name: str) -> int:
        """Return the id of a process; 0 while it does not run."""
        return int(self.manage("getProcessInfo", name)["pid"])

    def signal(self, name: str, number: int) -> int:
        """Send a signal to a process that runs; return its id."""
        pid = wait_for(lambda: self.pid(name), f"{name} runs", 10)  # 0 would mean all of us
        os.kill(pid, number)
        return int(pid)

    def kill(self, name: str) -> None:
        """kill -9, and wait until the process manager has started it again, within two seconds."""
        self.started_again(name, self.signal(name, signal.SIGKILL), 2.5)

    def started_again(self, name: str, old: int, seconds: float) -> None:
        """Wait until the process manager has started `name` again, which had the id `old`."""
        wait_for(lambda: self.pid(name) not in {0, old}, f"{name} is started again", seconds)

    def beside(self, name: str, **environment: str) -> "subprocess.Popen[bytes]":
        """Start one more process like `name`, in another environment; the caller ends it."""
        program = self.configuration[f"program:{name}"]
        identity = folders.server_identity() if "user" in program else {"cwd": folders.PROJECT}
        with self.log.open("ab") as log:
            return subprocess.Popen(
                shlex.split(program["command"]),
                env=self.inside(PROCESS=name + "*", **environment),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **identity,
            )

    @contextmanager
    def replaced(self, name: str, **environment: str) -> "Iterator[subprocess.Popen[bytes]]":
        """Run one process outside of the stack, in another environment, instead of those that are meant."""
        names = serving(name)
        for one in names:
            self.manage("stopProcess", one)
        process = self.beside(names[0], **environment)
        try:
            yield process
        finally:
            end(process, QUITS.get(name, signal.SIGTERM))
            for one in names:
                self.manage("startProcess", one)

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        """Have the processes that are meant stand still for a while."""
        pids = [self.signal(one, signal.SIGSTOP) for name in names for one in serving(name)]
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def policy(self, **columns: float) -> None:
        """Change every agent's policy; what this version does not know yet is passed over."""
        known = self.sql(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_name = 'orchestration_policy'"
        )
        kept = {name: value for name, value in columns.items() if (name,) in known}
        text = ", ".join(f'"{name}" = %s' for name in kept)
        self.sql(f"UPDATE orchestration_policy SET {text}", *kept.values())

    def place(
        self, count: int, *, card: str = "pm_card_visa", flying: int = 0, **environment: str
    ) -> list[str]:
        """Place orders as the checkout does, through the shop's own code; return their ids.

        More than `count` are placed until `flying` of them are open, as long as that is possible.
        """
        given = [str(count), "--card", card, "--flying", str(flying)]
        seconds = COMMAND + count / SLOWEST
        return self.python("drill.place", *given, seconds=seconds, **environment).split()

    def python(
        self, module: str, *arguments: str, seconds: float = COMMAND, **environment: str
    ) -> str:
        """Run a module in the stack's own environment; return what it printed."""
        command = [sys.executable, "-m", module, *arguments]
        return self.run(command, check=True, seconds=seconds, **environment).stdout

    def run(
        self,
        command: Sequence[str],
        *,
        check: bool = True,
        seconds: float = COMMAND,
        **environment: str,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in the stack's own environment to its end."""
        with self.log.open("ab") as log:
            return subprocess.run(
                command,
                env=self.inside(**environment),
                cwd=folders.PROJECT,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                check=check,
                timeout=seconds,
            )

    def inside(self, **more: str) -> dict[str, str]:
        """Return the environment that the stack's own processes have."""
        key = (self.folder / "secrets" / "secret_key").read_text()
        return {**self.environment, "SECRET_KEY": key, **more}


def end(process: "subprocess.Popen[bytes]", by: signal.Signals = signal.SIGTERM) -> None:
    """Ask a process to stop, and see to it that it does."""
    process.send_signal(by)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)
