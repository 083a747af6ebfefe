"""`python -m sasweb.stack`: the whole system on this machine, until Ctrl-C. `make run` calls it."""

import argparse
import contextlib
import fcntl
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import django
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection

from sasweb import env

from . import embedded

PATIENCE = 120  # seconds for anything to become ready: a busy machine takes its time

READY = """
  Ready.

  Shop         http://localhost:{port}/
  Operators    http://localhost:{port}/ops/      operator / {operator}
  Admin        http://localhost:{port}/admin/    admin / {admin}
  Partners     http://localhost:{sandbox_port}/
  API          http://localhost:{port}/api/docs
               Authorization: Bearer sas_{token}

  Data in {data}. Ctrl-C stops everything; the data stays.
"""


def main() -> None:
    """Start every process, wait until orders can be placed, then show the log until interrupted."""
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument("--port", type=int, default=env.number("PORT", 8000))
    parser.add_argument("--sandbox-port", type=int, default=env.number("SANDBOX_PORT", 8900))
    parser.add_argument(
        "--demo", action="store_true", help="with orders in every state, if there are none yet"
    )
    options = parser.parse_args()
    for number, variable in ((options.port, "PORT"), (options.sandbox_port, "SANDBOX_PORT")):
        _require_free(number, variable)
    embedded.make_data_dir()
    # several processes write this log: in a file, each line goes to the end
    fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_APPEND)
    os.environ.setdefault("SECRET_KEY", embedded.secret("secret_key", make=True))
    os.environ |= {
        "PORT": str(options.port),
        "SANDBOX_PORT": str(options.sandbox_port),
        "PYTHONUNBUFFERED": "1",
    }
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sasweb.settings")
    django.setup()
    run(options.port, options.sandbox_port, demo=options.demo)


def run(port: int, sandbox_port: int, *, demo: bool = False) -> None:
    """Run a stack on these ports until SIGINT or SIGTERM; `demo` gives it a past, once it is up."""
    from .processes import configuration, programs

    members = programs(port=port, sandbox_port=sandbox_port, demo=demo)
    file = embedded.data_dir() / "supervisord.conf"
    file.write_text(configuration(members))
    manager = subprocess.Popen(
        [sys.executable, "-m", "supervisor.supervisord", "--configuration", str(file)],
        start_new_session=True,  # Ctrl-C reaches this process, which has the others stopped in order
    )

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        _prepare(manager, port)
        print(_ready(port, sandbox_port), flush=True)
        with _demo() if demo else contextlib.nullcontext():
            manager.wait()
    except KeyboardInterrupt:
        print("\nStopping …", flush=True)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        manager.terminate()
        manager.wait()


def _prepare(manager: "subprocess.Popen[bytes]", port: int) -> None:
    """Bring up the servers, then the database's tables, then everything else."""
    from .processes import APPLICATION, control

    def alive() -> bool:
        if manager.poll() is not None:
            raise SystemExit(f"The process manager ended; see {embedded.data_dir() / 'logs'}.")
        return True

    _wait("Postgres", lambda: alive() and _database_answers())
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    with control() as manager_socket:
        remote = manager_socket.supervisor
        remote.startProcess(f"{APPLICATION}:sandbox")
        port_of_sandbox = int(os.environ["SANDBOX_PORT"])
        _wait("the sandbox", lambda: alive() and _answers(port_of_sandbox, "/healthz"))
        call_command("seed", verbosity=0)
        remote.startProcessGroup(APPLICATION, False)
    _wait("the web server", lambda: alive() and _answers(port, "/readyz"))


@contextlib.contextmanager
def _demo() -> Iterator[None]:
    """Have orders placed meanwhile that end in every state; whatever comes of it, the stack stands."""
    with (embedded.data_dir() / "logs" / "demo.log").open("ab") as log:
        playing = subprocess.Popen(
            [sys.executable, str(embedded.PROJECT / "manage.py"), "demo_orders", "--first"],
            stdout=log,
            stderr=log,
            start_new_session=True,  # as above
            preexec_fn=lambda: os.nice(10),  # noqa: PLW1509 - nobody waits for it: after all others
        )
        try:
            yield
        finally:
            playing.terminate()
            playing.wait()


def _ready(port: int, sandbox_port: int) -> str:
    return READY.format(
        port=port,
        sandbox_port=sandbox_port,
        data=embedded.data_dir(),
        operator=embedded.secret("operator_password"),
        admin=embedded.secret("admin_password"),
        token=embedded.secret("example_token"),
    )


def _require_free(port: int, variable: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))  # noqa: S104 - only to see whether it is free
        except OSError as error:
            raise SystemExit(
                f"Port {port} is busy ({error.strerror}). Stop what uses it, or choose another: "
                f"{variable}={port + 1} make run"
            ) from None


def _wait(what: str, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            logs = embedded.data_dir() / "logs"
            raise SystemExit(f"{what} is not ready after {PATIENCE} s; see {logs}.")
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
        # as a proxy would ask that ends HTTPS, for a host that is allowed
        host = settings.ALLOWED_HOSTS[0].strip("*.") or "localhost"
        client.request("GET", path, headers={"Host": host, "X-Forwarded-Proto": "https"})
        return client.getresponse().status == 200
    except OSError:
        return False
    finally:
        client.close()


if __name__ == "__main__":
    main()
