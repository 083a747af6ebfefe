"""`python -m sasweb.stack.setup`: brings up the other processes of a stack, and says when it is ready.

The first process that the manager starts. Ready means that an order placed now is processed: each
queue has a worker, a supervisor leads, the web server answers, and a task went through all parts.
"""

import argparse
import contextlib
import http.client
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import django

django.setup()  # where this is a Python of its own

from django.conf import settings  # noqa: E402 - the models need django.setup()
from django.core.management import CommandError, call_command  # noqa: E402
from django.db import Error, connection  # noqa: E402

from orchestration.database import sql  # noqa: E402
from orchestration.monitoring import canary  # noqa: E402

from .. import env  # noqa: E402
from . import embedded, folders  # noqa: E402
from .processes import APPLICATION, DEMO, ONCE, control, log_file, workers  # noqa: E402

PATIENCE = 120.0  # seconds for anything to become ready: a busy machine takes its time
LOOK = 0.03  # seconds between two looks
ASK = 0.5  # seconds between two looks at the processes themselves
ENDINGS = 3  # restarts allowed before a process counts as broken
TAIL = 15  # lines of a log that are shown
WEB, SANDBOX, LEADER = "web", "sandbox", "supervisor-1"

READY = """
  Ready. It took {seconds:.1f} s; {canary}.

  Shop         http://{name}:{port}/
  Operators    http://{name}:{port}/ops/      {operator}
  Admin        http://{name}:{port}/admin/    {admin}
  Partners     http://localhost:{sandbox_port}/
  API          http://{name}:{port}/api/docs
               {token}

  Data in {data}. Ctrl-C stops everything; the data stays.
"""
OPEN = """
  HOST={host}: every machine that reaches this one can open the shop, without TLS. The partners' page
  stays on this machine. Anyone with a password of the demo can log in.
"""


class NotReady(Exception):
    """A part of the stack does not come up; the text says which, and shows the end of its log."""


class Parts:
    """The processes of the stack, and whether they keep ending."""

    def __init__(self) -> None:
        self._asked_at = 0.0
        self._pids: dict[str, int] = {}
        self._endings: Counter[str] = Counter()

    def wait(self, ready: Callable[[], Sequence[str]], why: Callable[[], str] = str) -> None:
        """Wait until `ready` names no part any more that is not; raise `NotReady` in the end.

        `why` gives the reason, if it is known.
        """
        deadline = time.monotonic() + PATIENCE
        while missing := ready():
            broken = [name for name in self._broken() if name in missing]
            if broken:
                raise NotReady(_report(broken[0], "ends again and again", why()))
            if time.monotonic() > deadline:
                raise NotReady(_report(missing[0], f"is not ready after {PATIENCE:.0f} s", why()))
            time.sleep(LOOK)

    def _broken(self) -> list[str]:
        """Return the parts that ended by themselves too often."""
        if time.monotonic() >= self._asked_at + ASK:
            self._asked_at = time.monotonic()
            for name, pid in _processes().items():
                if pid != self._pids.setdefault(name, pid):
                    self._endings[name] += 1
                    self._pids[name] = pid
        return [name for name, count in self._endings.items() if count >= ENDINGS]


def _processes() -> dict[str, int]:
    """Return the process id of each part that runs."""
    with control() as manager:
        processes: Any = manager.supervisor.getAllProcessInfo()
    return {process["name"]: process["pid"] for process in processes if process["pid"]}


def _report(part: str, what: str, why: str) -> str:
    lines = [f"Not ready: {part} {what}.{' ' + why if why else ''}"]
    with contextlib.suppress(OSError), log_file(part).open(errors="replace") as log:
        if tail := deque(log, TAIL):
            lines.append(f"The end of its log, {log_file(part)}:")
            lines += [f"    {line.rstrip()}" for line in tail]
    return "\n".join(lines)


def bring_up(host: str, port: int, sandbox_port: int) -> str:
    """Bring up the servers, the database's tables, then all else; return the canary's result."""
    parts = Parts()
    problem = _Problem()
    parts.wait(lambda: [] if _database_answers(problem) else ["postgres"], problem.text)
    call_command("migrate", verbosity=0)
    began: datetime = sql.run("SELECT clock_timestamp()", {})[0][0]
    with control() as manager:
        manager.supervisor.startProcess(f"{APPLICATION}:{SANDBOX}")
        call_command("collectstatic", verbosity=0, interactive=False)
        parts.wait(lambda: [] if _answers("127.0.0.1", sandbox_port, "/healthz") else [SANDBOX])
        call_command("seed", verbosity=0)
        manager.supervisor.startProcessGroup(APPLICATION, False)
    parts.wait(lambda: [] if _answers(_reached(host), port, "/readyz") else [WEB])
    parts.wait(lambda: [LEADER] if canary.missing_leaders(began) else [])
    parts.wait(lambda: _of(sorted(canary.unserved(began))))
    return _canary(parts)


def _canary(parts: Parts) -> str:
    """Send a task through all parts; return how long it took, or why it was not sent."""
    if closed := canary.closed():
        return f"no task was sent through all parts to prove it, because of {', '.join(closed)}"
    began = time.monotonic()
    reference = canary.send()
    parts.wait(lambda: _of(canary.waits_for(reference)))
    return f"a task went through all parts in {time.monotonic() - began:.2f} s"


def _of(queues: Iterable[str]) -> list[str]:
    return [name for queue in queues for name in workers(queue)]


class _Problem:
    """The last problem."""

    def __init__(self) -> None:
        self.last_problem = ""

    def text(self) -> str:
        """Return it."""
        return self.last_problem


def _database_answers(problem: _Problem) -> bool:
    """Say whether the database is there; make it in the embedded server if it is not."""
    try:
        connection.ensure_connection()
    except Error as error:
        problem.last_problem = sql.first_line(error)
        if "does not exist" in str(error) and not env.text("DATABASE_URL"):
            with contextlib.suppress(Error), connection._nodb_cursor() as cursor:  # noqa: SLF001
                cursor.execute(f'CREATE DATABASE "{embedded.DATABASE}"')
        return False
    return True


def _reached(host: str) -> str:
    """Return an address at which a server that listens on `host` is reached from here."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared only


def _answers(host: str, port: int, path: str) -> bool:
    client = http.client.HTTPConnection(host, port, timeout=2)
    try:
        # as a proxy would ask that ends HTTPS, for a host that is allowed
        name = settings.ALLOWED_HOSTS[0].strip("*.") or "localhost"
        client.request("GET", path, headers={"Host": name, "X-Forwarded-Proto": "https"})
        return client.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()


def _login(name: str, *, shown: bool) -> str:
    """Return the login: the password itself only on a terminal, otherwise its file."""
    file = f"{name}_password"
    return f"{name} / {folders.secret(file) if shown else folders.secret_file(file)}"


def _ready(arguments: argparse.Namespace, canary_result: str) -> str:
    name = "example_token"
    return READY.format(
        seconds=time.time() - float(os.environ["STARTED"]),
        canary=canary_result,
        name="localhost",
        port=arguments.port,
        sandbox_port=arguments.sandbox_port,
        data=folders.data_dir(),
        operator=_login("operator", shown=arguments.shown),
        admin=_login("admin", shown=arguments.shown),
        token=f"Authorization: Bearer sas_{folders.secret(name)}"
        if arguments.shown
        else f"Authorization: Bearer sas_$(cat {folders.secret_file(name)})",
    )


def main() -> None:
    """Bring everything up; say that it is ready, or raise SystemExit with what is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--sandbox-port", type=int, required=True)
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--local", action="store_true", help="no other machine reaches it")
    parser.add_argument("--shown", action="store_true", help="to a person, at a terminal")
    arguments = parser.parse_args()
    try:
        result = bring_up(arguments.host, arguments.port, arguments.sandbox_port)
    except (NotReady, CommandError) as problem:
        raise SystemExit(f"\n{problem}\n") from None
    print(
        _ready(arguments, result) + ("" if arguments.local else OPEN.format(host=arguments.host)),
        flush=True,
    )
    if arguments.demo:
        with control() as manager:
            manager.supervisor.startProcess(f"{ONCE}:{DEMO}")


if __name__ == "__main__":
    main()
