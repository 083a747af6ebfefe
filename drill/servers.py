"""Postgres, Redis and the sandbox alone, in this process's data folder: for tests and benchmarks.

`drill.stack` starts the whole system instead.
"""

import json
import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2  # type: ignore[import-untyped]
import redis

from drill.process import Process, end_all, free_port
from drill.waiting import wait_for
from sasweb.stack import embedded, folders

POSTGRES_SOCKET, REDIS_SOCKET = ".s.PGSQL.5432", "redis.sock"
FAST = ("fsync=off", "full_page_writes=off")  # for data that no test needs after a crash


class Clients:
    """Connections to the servers of a stack, past any proxy in front of them."""

    postgres_port = 5432  # part of the socket's name; differs while a proxy has that name
    sandbox_port: int

    @property
    def sockets(self) -> Path:
        """Return the folder of the servers' sockets."""
        return folders.socket_dir()

    def connect(self, database: str = embedded.DATABASE) -> Any:
        """Return a connection to Postgres."""
        return psycopg2.connect(
            dbname=database,
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

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement that cannot run in a transaction; return its rows."""
        connection = self.connect(database)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def count(self, statement: str, *parameters: object) -> int:
        """Return the single number that a statement selects."""
        return int(self.sql(statement, *parameters)[0][0])

    def answers(self) -> bool:
        """Return whether Postgres accepts statements."""
        try:
            return self.execute("SELECT 1") == [(1,)]
        except psycopg2.Error:
            return False

    @contextmanager
    def redis(self) -> "Iterator[redis.Redis]":
        """Yield a Redis client."""
        behind = self.sockets / f"{REDIS_SOCKET}.real"
        socket_path = behind if behind.exists() else self.sockets / REDIS_SOCKET
        with redis.Redis(unix_socket_path=str(socket_path)) as client:
            yield client

    def redis_answers(self) -> bool:
        """Return whether Redis accepts commands."""
        try:
            with self.redis() as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False

    def sandbox(self, path: str, body: object = None, method: str = "GET") -> Any:
        """Send a request to the sandbox; return its JSON."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.sandbox_port}{path}",
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - our own sandbox
            return json.load(response)

    def sandbox_answers(self) -> bool:
        """Return whether the sandbox accepts requests."""
        try:
            return bool(self.sandbox("/healthz"))
        except OSError:
            return False


class Servers(Clients):
    """The servers; each writes a log of its name into `logs`."""

    def __init__(self, logs: Path) -> None:
        self.logs = folders.make(logs)
        self.sandbox_port = free_port()
        self.running: dict[str, Process] = {}

    def start_postgres(self, *settings: str) -> None:
        """Start Postgres, with settings such as "fsync=off"."""
        options = [part for setting in settings for part in ("-c", setting)]
        self._start("postgres", [*embedded.prepare_postgres(), *options])
        self._wait("postgres", self.answers)

    def start_redis(self) -> None:
        """Start Redis."""
        self._start("redis", embedded.prepare_redis())
        self._wait("redis", self.redis_answers)

    def start_sandbox(self, folder: Path, seconds: float = 30.0) -> None:
        """Start the sandbox, which keeps its data in `folder`."""
        command = [sys.executable, "-m", "sandbox", "--port", str(self.sandbox_port)]
        self.running["sandbox"] = self.process("sandbox", [*command, "--data", str(folder)])
        self._wait("sandbox", self.sandbox_answers, seconds)

    def create_database(self, name: str = embedded.DATABASE) -> None:
        """Create a database unless it exists."""
        if (name,) not in self.execute("SELECT datname FROM pg_database"):
            self.execute(f'CREATE DATABASE "{name}"')

    def process(self, name: str, command: list[str], **options: Any) -> Process:
        """Start a process that logs to a file of its name; the caller ends it."""
        return Process(command, self.logs / f"{name}.log", **options)

    def stop(self) -> None:
        """Stop the servers; Postgres ends its sessions and keeps its data."""
        running, self.running = list(self.running.values()), {}
        end_all(running, signal.SIGINT, 20)

    def _start(self, name: str, command: list[str]) -> None:
        self.running[name] = self.process(name, command, **folders.server_identity())

    def _wait(self, name: str, answers: Callable[[], bool], seconds: float = 30.0) -> None:
        def ready() -> bool:
            assert self.running[name].poll() is None, f"{name} has ended; see {self.logs}"
            return answers()

        wait_for(ready, f"{name} answers; see {self.logs}", seconds)


@contextmanager
def servers(*settings: str) -> Iterator[Servers]:
    """Run Postgres and Redis, each unless DATABASE_URL or REDIS_URL names another."""
    running = Servers(folders.make_data_dir() / "logs")
    try:
        if not os.environ.get("DATABASE_URL"):
            running.start_postgres(*settings)
        if not os.environ.get("REDIS_URL"):
            running.start_redis()
        yield running
    finally:
        running.stop()
        folders.remove_socket_dir()
