"""A Redis, its replica, and three sentinels that agree on which of both is the master."""

import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import redis

from drill.process import Process, end_all, free_port
from drill.waiting import wait_for
from sasweb.stack import embedded, folders

NAME = "drill"
SENTINELS = 3
DOWN_AFTER = 3_000  # milliseconds without an answer after which a sentinel takes a master for dead
SENTINEL = """
bind 127.0.0.1
port {port}
dir {folder}
sentinel monitor {name} 127.0.0.1 {master} 2
sentinel down-after-milliseconds {name} {down_after}
sentinel failover-timeout {name} 10000
"""


class Sentinels:
    """The servers by their ports; `url` is what clients connect by."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self._folder = folders.make(folder, servers=True)
        self._program = embedded.prepare_redis()[0]
        self.servers = {free_port(): None, free_port(): None}
        self._running: dict[int, Process] = {}
        self._ports = [free_port() for _ in range(SENTINELS)]

    @property
    def url(self) -> str:
        """Return the REDIS_URL of the processes."""
        return f"sentinel://{','.join(f'127.0.0.1:{port}' for port in self._ports)}/{NAME}/0"

    def start(self) -> None:
        """Start all, and wait until each sentinel knows the others and the replica."""
        first, second = self.servers
        self.start_server(first)
        self.start_server(second, "--replicaof", f"127.0.0.1 {first}")
        for port in self._ports:
            place = folders.make(self._folder / str(port), servers=True)
            file = place / "sentinel.conf"
            file.write_text(
                SENTINEL.format(
                    port=port, folder=place, name=NAME, master=first, down_after=DOWN_AFTER
                )
            )
            if folders.server_user():
                shutil.chown(file, folders.server_uid())  # it keeps what it learns there
            self._start(port, [self._program, str(file), "--sentinel"])
        wait_for(self._agreed, "the sentinels know each other", 30, pause=0.2)

    def _agreed(self) -> bool:
        try:
            masters = [self._client(port).sentinel_master(NAME) for port in self._ports]
        except redis.RedisError:
            return False
        return all(
            master["num-slaves"] == 1 and master["num-other-sentinels"] == SENTINELS - 1
            for master in masters
        )

    def start_server(self, port: int, *options: str) -> None:
        """Start a server that keeps nothing on disk, and wait until it answers."""
        place = folders.make(self._folder / str(port), servers=True)
        command = [self._program, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(place)]
        self._start(port, [*command, "--save", "", *options])
        wait_for(lambda: self.role(port), f"Redis at {port} answers", 20)

    def _start(self, port: int, command: list[str]) -> None:
        log = folders.data_dir() / "sentinel.log"
        self._running[port] = Process(command, log, **folders.server_identity())

    def stop(self) -> None:
        """Stop all of them."""
        end_all(self._running.values(), signal.SIGKILL)

    def kill(self, port: int) -> None:
        """Kill a server."""
        self._running[port].end(signal.SIGKILL)

    @contextmanager
    def suspended(self, port: int) -> Iterator[None]:
        """Suspend a server: it accepts connections and answers none."""
        self._running[port].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._running[port].send_signal(signal.SIGCONT)

    def role(self, port: int) -> str:
        """Return "master" or "slave"; empty if the server does not answer."""
        with suppress(redis.RedisError):
            return str(self._client(port).role()[0], "ascii")
        return ""

    def master(self) -> int:
        """Return the port of the server that the sentinels name as master."""
        return int(self._client(self._ports[0]).sentinel_get_master_addr_by_name(NAME)[1])

    def other(self, port: int) -> int:
        """Return the port of the other server."""
        return next(server for server in self.servers if server != port)

    def wait_for_failover(self, old: int) -> float:
        """Wait until the replica is the master; return the seconds that took."""
        began = time.monotonic()
        new = self.other(old)
        wait_for(lambda: self.master() == new and self.role(new) == "master", "a failover", 30)
        return time.monotonic() - began

    def wait_for_replica(self, port: int) -> None:
        """Wait until a server that returned is the other's replica."""
        wait_for(lambda: self.role(port) == "slave", "the old master is a replica", 60, pause=0.2)

    def client(self) -> redis.Redis:
        """Return a client of the master."""
        return self._client(self.master())

    def _client(self, port: int) -> redis.Redis:
        return redis.Redis(port=port, socket_timeout=1, socket_connect_timeout=1)
