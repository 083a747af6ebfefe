"""A whole system of its own, as `make run` starts it, and the means to hurt it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xmlrpc.client import ServerProxy

import psycopg2
from supervisor.xmlrpc import SupervisorTransport

from sasweb.stack import embedded
from tests.servers import wait_for

LIVE = "SELECT count(*) FROM orchestration_task WHERE state IN ('pending', 'processing')"
POSTED = "SELECT count(*) FROM orchestration_submission WHERE refused_at IS NULL"
TOLD = "SELECT count(*) FROM orchestration_statusmessage"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Stack:
    """Starts `python -m sasweb.stack` in a data folder of its own; `environment` adds variables."""

    def __init__(self, name: str, **environment: str) -> None:
        self.folder = embedded.data_dir() / name
        self.port, self.sandbox_port = free_port(), free_port()
        self.environment = {
            **os.environ,
            "DATA_DIR": str(self.folder),
            "PORT": str(self.port),
            "SANDBOX_PORT": str(self.sandbox_port),
            "SECRET_KEY": "",
            "DJANGO_SETTINGS_MODULE": "sasweb.settings",
            **environment,
        }
        self.process: subprocess.Popen[bytes] | None = None

    # --- life ----------------------------------------------------------------------------------
    def start(self, *, fresh: bool = True) -> "Stack":
        if fresh:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "run.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sasweb.stack"],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=embedded.PROJECT,
                start_new_session=True,
            )
        try:
            wait_for(self._ready, f"the stack is ready; see {self.log}", 60)
        except AssertionError:
            self.stop()
            raise AssertionError(self.log.read_text()[-5000:]) from None
        return self

    def _ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()[-5000:]
        return "Ready." in self.log.read_text()

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)

    # --- looking -------------------------------------------------------------------------------
    @property
    def sockets(self) -> Path:
        text = (self.folder / "supervisord.conf").read_text()
        line = next(line for line in text.splitlines() if line.startswith("file = "))
        return Path(line.removeprefix("file = ")).parent

    def sql(self, statement: str, *parameters):
        connection = psycopg2.connect(dbname="sas", user="postgres", host=str(self.sockets))
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(statement, parameters)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def count(self, statement: str, *parameters) -> int:
        return int(self.sql(statement, *parameters)[0][0])

    def sandbox(self, path: str, body=None, method: str = "GET"):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.sandbox_port}{path}",
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=20) as response:  # noqa: S310
            return json.load(response)

    # --- acting --------------------------------------------------------------------------------
    def manage(self, act: str, name: str = ""):
        """Have supervisord do something: with one of the application's processes, or a server."""
        group = "servers" if name in {"postgres", "redis"} else "application"
        transport = SupervisorTransport(None, None, f"unix://{self.sockets}/supervisor.sock")
        with ServerProxy("http://127.0.0.1", transport=transport) as proxy:
            call = getattr(proxy.supervisor, act)
            return call(f"{group}:{name}") if name else call()

    def pid(self, name: str) -> int:
        return int(self.manage("getProcessInfo", name)["pid"])

    def signal(self, name: str, number: int) -> int:
        """Send a signal to a process that runs; return its id."""
        pid = wait_for(lambda: self.pid(name), f"{name} runs", 10)  # 0 would mean all of us
        os.kill(pid, number)
        return int(pid)

    def kill(self, name: str) -> None:
        """kill -9, and wait until the process manager has started it again, within two seconds."""
        old = self.signal(name, signal.SIGKILL)
        wait_for(lambda: self.pid(name) not in {0, old}, f"{name} is started again", 2.5)

    @contextmanager
    def replaced(self, name: str, **environment: str) -> Iterator[None]:
        """Run a worker of the stack outside of it, in another environment, for a while."""
        self.manage("stopProcess", name)
        command, queue = name.split("-", 1)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "manage.py", command, queue],
                env=self.inside(PROCESS=name + "*", **environment),
                cwd=embedded.PROJECT,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            finally:
                process.kill()
                self.manage("startProcess", name)

    def leader(self) -> str:
        """Return the name of the supervisor that leads now."""
        holder = self.sql("SELECT holder FROM orchestration_lease WHERE expires_at > now()")
        pid = int(holder[0][0].split(":")[1].split("-")[0]) if holder else 0
        names = [name for name in ("supervisor-1", "supervisor-2") if self.pid(name) == pid]
        return names[0] if names else ""

    def policy(self, **columns) -> None:
        """Change every agent's policy."""
        text = ", ".join(f'"{name}" = %s' for name in columns)
        self.sql(f"UPDATE orchestration_policy SET {text}", *columns.values())

    def place(self, count: int, card: str = "pm_card_visa") -> list[str]:
        """Place orders as the checkout does, through the shop's own code; return their ids."""
        return self.python("tests.stack.place", str(count), card).split()

    def python(self, module: str, *arguments: str) -> str:
        """Run a module in the stack's own environment; return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env=self.inside(),
            cwd=embedded.PROJECT,
            stdout=subprocess.PIPE,
            check=True,
            timeout=100,
        )
        return done.stdout.decode()

    def inside(self, **more: str) -> dict[str, str]:
        """Return the environment that the stack's own processes have."""
        key = (self.folder / "secrets" / "secret_key").read_text()
        return {**self.environment, "SECRET_KEY": key, **more}

    def quiet(self, seconds: float = 90) -> None:
        """Wait until nothing is posted, live or untold."""

        def settled() -> bool:
            try:
                return not any(self.count(statement) for statement in (POSTED, LIVE, TOLD))
            except psycopg2.OperationalError:
                return False

        wait_for(settled, "everything has come to an end", seconds, pause=0.2)

    def in_flight(self, at_least: int = 1, seconds: float = 20) -> None:
        wait_for(lambda: self.count(LIVE) >= at_least, f"{at_least} tasks are in flight", seconds)

    def processed(self, at_least: int, seconds: float = 60) -> None:
        """Wait until so many tasks are processed."""
        statement = "SELECT count(*) FROM orchestration_task WHERE state = 'processed'"
        wait_for(lambda: self.count(statement) >= at_least, f"{at_least} are processed", seconds)


def check(stack: Stack, orders: list[str]) -> None:
    """Compare every order with the partners' ledger: none lost, charged twice, or stuck."""
    states = dict(stack.sql("SELECT reference, state FROM orchestration_task"))
    totals = dict(stack.sql("SELECT id::text, total FROM orders_order"))
    told = dict(stack.sql("SELECT id::text, status FROM orders_order"))
    ledger = stack.sandbox("/ledger/summary")
    wrong = []
    for order in orders:
        effects = ledger.get(order, {})
        found = {
            "state": states.get(order),
            "shop": told.get(order),
            **{name: effects.get(name) for name in ("authorized", "captured", "refunded")},
            **{name: effects.get(name) for name in ("reservations", "shipments", "mails")},
        }
        total = totals.get(order)
        expected = {
            "state": "processed",
            "shop": "confirmed",
            "authorized": total,
            "captured": total,
            "refunded": 0,
            "reservations": 1,
            "shipments": 1,
            "mails": 1,
        }
        if found != expected:
            wrong.append((order, found, expected))
    assert not wrong, f"{len(wrong)} of {len(orders)}, for example {wrong[0]}"
