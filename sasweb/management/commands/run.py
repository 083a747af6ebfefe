"""`manage.py run`: the whole system on this machine, until Ctrl-C. `make run` calls it."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from sasweb.stack import embedded
from sasweb.stack.processes import APPLICATION, configuration, control, programs

PATIENCE = 60  # seconds for anything to become ready

READY = """
  Ready.

  Shop         http://localhost:{port}/
  Operators    http://localhost:{port}/ops/      operator / {operator}
  Admin        http://localhost:{port}/admin/    admin / {admin}
  Partners     http://localhost:{sandbox_port}/

  Data in {data}. Ctrl-C stops everything; the data stays.
"""


class Command(BaseCommand):
    """Starts every process, waits until orders can be placed, then shows the log."""

    help = "Run everything: Postgres, Redis, partners' sandbox, web, workers, two supervisors."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the ports."""
        environment = os.environ.get
        parser.add_argument("--port", type=int, default=int(environment("PORT") or 8000))
        parser.add_argument(
            "--sandbox-port", type=int, default=int(environment("SANDBOX_PORT") or 8900)
        )

    def handle(self, *_: Any, port: int, sandbox_port: int, **__: Any) -> None:
        """Run until interrupted."""
        for number, variable in ((port, "PORT"), (sandbox_port, "SANDBOX_PORT")):
            _require_free(number, variable)
        folder = embedded.make_data_dir()
        os.environ |= {"SECRET_KEY": embedded.secret("secret_key", make=True)}
        os.environ |= {"SANDBOX_PORT": str(sandbox_port), "PYTHONUNBUFFERED": "1"}
        members = programs(port=port, sandbox_port=sandbox_port)
        file = folder / "supervisord.conf"
        file.write_text(configuration(members))
        manager = subprocess.Popen(
            [sys.executable, "-m", "supervisor.supervisord", "--configuration", str(file)],
            start_new_session=True,  # Ctrl-C reaches us; we stop the others in order
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: manager.terminate())
        try:
            self._prepare(manager, [item.name for item in members if item.group == APPLICATION], port)
        except BaseException:
            manager.terminate()
            manager.wait()
            raise
        self.stdout.write(
            READY.format(
                port=port,
                sandbox_port=sandbox_port,
                data=folder,
                operator=embedded.secret("operator_password"),
                admin=embedded.secret("admin_password"),
            )
        )
        self.stdout.flush()
        manager.wait()

    def _prepare(self, manager: "subprocess.Popen[bytes]", names: list[str], port: int) -> None:
        def alive() -> bool:
            if manager.poll() is not None:
                raise CommandError(f"the process manager ended; see {embedded.data_dir() / 'logs'}")
            return True

        _wait("Postgres", lambda: alive() and _database_answers(), embedded.data_dir())
        call_command("migrate", verbosity=0)
        call_command("collectstatic", verbosity=0, interactive=False)
        remote = control()
        remote.supervisor.startProcess("sandbox")
        for name in names:
            if name != "sandbox":
                remote.supervisor.startProcess(name, False)
        call_command("seed", verbosity=0)
        _wait("the web server", lambda: alive() and _answers(port, "/readyz"), embedded.data_dir())


def _require_free(port: int, variable: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))  # noqa: S104 - only to see whether it is free
        except OSError as error:
            raise CommandError(
                f"port {port} is busy ({error.strerror}); choose another: {variable}={port + 1} make run"
            ) from None


def _wait(what: str, ready: Callable[[], bool], data: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise CommandError(f"{what} is not ready after {PATIENCE} s; see {data / 'logs'}")
        time.sleep(0.05)


def _database_answers() -> bool:
    """Say whether the database is there; make it in the embedded server if it is not."""
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        if "does not exist" in str(error) and not os.environ.get("DATABASE_URL"):
            with contextlib.suppress(DatabaseError), connection._nodb_cursor() as cursor:  # noqa: SLF001
                cursor.execute(f'CREATE DATABASE "{embedded.DATABASE}"')
        return False
    return True


def _answers(port: int, path: str) -> bool:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        client.request("GET", path, headers={"Host": "localhost"})
        return client.getresponse().status == 200
    except OSError:
        return False
    finally:
        client.close()
