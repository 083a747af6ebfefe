"""Run calls or processes at the same moment, to test races."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from urllib.parse import quote

from django.db import connection

Name = TypeVar("Name", bound=Hashable)
Answer = TypeVar("Answer")


def at_once(acts: Mapping[Name, Callable[[], Answer]]) -> dict[Name, Answer]:
    """Start all calls together, each on its own database connection; return their results."""
    together = threading.Barrier(len(acts))

    def run(act: Callable[[], Answer]) -> Answer:
        together.wait()
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        begun = {name: pool.submit(run, act) for name, act in acts.items()}
    return {name: future.result() for name, future in begun.items()}


def database_url() -> str:
    """Return the URL of the tests' database."""
    known = connection.settings_dict
    host = known["OPTIONS"].get("host") or known["HOST"]
    return f"postgresql://{known['USER']}@/{known['NAME']}?host={quote(host)}"


def processes(
    module: str, argvs: Sequence[Sequence[str]], *, seconds: float = 100, **environment: str
) -> list[tuple[int, str]]:
    """Run a module once for each of `given`; return their exit codes and output.

    The processes use the tests' database, and continue when all of them wait in `together`.
    """
    url = database_url()
    started = [
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "DATABASE_URL": url, **environment},
        )
        for arguments in argvs
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=seconds)[0] for process in started]
    return [(process.returncode, text) for process, text in zip(started, printed, strict=True)]


def together() -> None:
    """Connect to the database and wait for the other processes; called in a process of `processes`."""
    connection.ensure_connection()
    print("ready", flush=True)
    sys.stdin.readline()
