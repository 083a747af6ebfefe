"""The servers and processes of a benchmark: started, measured, and stopped in every case."""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psycopg2  # type: ignore[import-untyped]
import redis

from bench.measure import cpu_seconds, peak_memory
from sasweb.stack import embedded, folders

PROJECT = folders.PROJECT
PEERS_DATABASE = "bench_dbos"
_libc = ctypes.CDLL(None)


class Process:
    """One process in a session of its own, so that Ctrl-C reaches it by us alone."""

    def __init__(self, kind: str, command: Sequence[str], log: Path, **options: Any) -> None:
        self.kind = kind
        options.setdefault("cwd", PROJECT)
        self._log: IO[bytes] = log.open("ab")
        self.popen = subprocess.Popen(
            command,
            stderr=self._log,
            stdout=options.pop("stdout", self._log),
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - it only makes a system call
            **options,
        )

    def cpu(self) -> float:
        """Return seconds of CPU used so far, descendants included."""
        return cpu_seconds(self.popen.pid)

    def memory(self) -> float:
        """Return peak MB."""
        return peak_memory(self.popen.pid)

    def ask_to_stop(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to the process, if it still runs."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)

    def stop(self, give_up_at: float) -> None:
        """Wait for the process to end, but not for ever; end what is left of its session."""
        try:
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(max(0.0, give_up_at - time.monotonic()))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
            self._log.close()


class Stack:
    """Postgres, Redis and the sandbox; and what the systems under test need to find them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        self.port = free_port()
        self.servers: dict[str, Process] = {}

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of every process under test."""
        sockets = folders.socket_dir()
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        return kept | {
            "DATA_DIR": str(self.folder),
            "SANDBOX_PORT": str(self.port),
            "SANDBOX_URL": f"http://127.0.0.1:{self.port}",
            "PEER_DATABASE_URL": f"postgresql://postgres@/{PEERS_DATABASE}?host={sockets}",
            "REDIS_SOCKET": str(sockets / "redis.sock"),
        }

    def start(self, kind: str, command: Sequence[str], **options: Any) -> Process:
        """Start a process that logs to a file named by its kind."""
        return Process(kind, command, self.logs / f"{kind}.log", **options)

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Run a command to its end; raise RuntimeError with its last words if it fails."""
        done = subprocess.run(
            command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[-4:])} failed:\n{done.stderr[-2000:]}")

    def start_servers(self) -> None:
        """Start all three on empty data: durable as they come, fsync on."""
        for name in ("postgres", "redis", "sandbox", "logs"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        folders.make(self.logs)
        identity = folders.server_identity()
        self.servers["postgres"] = self.start("postgres", embedded.prepare_postgres(), **identity)
        self.servers["redis"] = self.start("redis", embedded.prepare_redis(), **identity)
        sandbox = [sys.executable, "-m", "sandbox", "--port", str(self.port)]
        sandbox += ["--data", str(self.folder / "sandbox")]
        self.servers["sandbox"] = self.start("sandbox", sandbox)
        _wait_for(lambda: psycopg2.connect(_dsn("postgres")).close(), "Postgres")
        _wait_for(self.redis().ping, "Redis")
        _wait_for(self.clear_sandbox, "the sandbox")
        for name in (embedded.DATABASE, PEERS_DATABASE):
            _execute("postgres", f'CREATE DATABASE "{name}"')

    def stop_servers(self) -> None:
        """Stop all, Postgres the quick way that keeps its data whole."""
        servers = list(self.servers.values())
        self.servers.clear()
        stop_all(servers)

    def redis(self) -> "redis.Redis":
        """Return a client."""
        return redis.Redis(unix_socket_path=str(folders.socket_dir() / "redis.sock"))

    def clear_sandbox(self) -> None:
        """Have the sandbox forget all calls, so that every system finds it the same."""
        url = f"http://127.0.0.1:{self.port}/ledger"
        request = urllib.request.Request(url, method="DELETE")
        urllib.request.urlopen(request, timeout=5).close()  # noqa: S310

    def calls(self) -> int:
        """Return how many calls with effect the sandbox has seen since it was cleared."""
        url = f"http://127.0.0.1:{self.port}/healthz"
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(json.load(answer)["entries"])

    def checkpoint(self) -> None:
        """Write out what earlier runs left, so that no run pays for another's."""
        _execute("postgres", "CHECKPOINT")

    def tidy(self, database: str) -> None:
        """Vacuum a database whose system has stopped, for the same reason."""
        _execute(database, "VACUUM (ANALYZE)")

    def cpu(self) -> dict[str, float]:
        """Return the servers' seconds of CPU."""
        return {kind: server.cpu() for kind, server in self.servers.items()}


def stop_all(processes: Sequence[Process], patience: float = 5.0) -> None:
    """Stop processes whose work is done, all at once; Postgres in its quick way ("fast")."""
    for process in processes:
        process.ask_to_stop(signal.SIGINT if process.kind == "postgres" else signal.SIGTERM)
    give_up_at = time.monotonic() + patience
    with ExitStack() as cleanup:
        for process in processes:
            cleanup.callback(process.stop, give_up_at)


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """Run the servers in `folder`, for as long as the block lasts."""
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    os.environ["DATA_DIR"] = str(folder)
    folders.data_dir.cache_clear()
    folders.make_data_dir()
    running = Stack(folder)
    try:
        running.start_servers()
        yield running
    finally:
        running.stop_servers()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _dsn(database: str) -> str:
    return f"dbname={database} user=postgres host={folders.socket_dir()}"


def _execute(database: str, statement: str) -> None:
    connection = psycopg2.connect(_dsn(database))
    try:
        connection.autocommit = True
        connection.cursor().execute(statement)
    finally:
        connection.close()


def _wait_for(attempt: Any, what: str, patience: float = 30.0) -> None:
    give_up_at = time.monotonic() + patience
    while True:
        try:
            attempt()
        except (OSError, psycopg2.OperationalError, redis.RedisError) as error:
            if time.monotonic() > give_up_at:
                raise RuntimeError(f"{what} does not answer: {error}") from error
            time.sleep(0.1)
        else:
            return


def _end_with_parent() -> None:
    """Have the kernel end this process when the benchmark dies, however it dies (Linux)."""
    _libc.prctl(1, signal.SIGTERM)
