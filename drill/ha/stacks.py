"""Stacks whose Postgres or Redis can be lost, as another server takes over."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, Self

import psycopg2  # type: ignore[import-untyped]
import redis

from drill.flows.stack import FlowsStack
from drill.ha.pooler import Pooler
from drill.ha.postgres import Pair
from drill.ha.sentinel import Sentinels
from drill.stack import Stack
from orchestration.database import session
from sasweb.stack import embedded, folders

USER = "postgres"


class Server(Protocol):
    """What a stack's processes use."""

    def start(self) -> None:
        """Start it, and wait until it answers."""

    def stop(self) -> None:
        """Stop it."""


class Beside(Stack):
    """A stack beside servers that start before it, and stop after it."""

    servers: Sequence[Server] = ()

    def start(self, *, fresh: bool = True) -> Self:
        """Start the servers, then the rest."""
        for server in self.servers:
            server.start()
        super().start(fresh=fresh)
        return self

    def stop(self) -> None:
        """Stop all, the servers last."""
        try:
            super().stop()
        finally:
            for server in reversed(self.servers):
                server.stop()


class Replicated(Beside):
    """Its processes know both servers; so do its own connections, and use the one that takes writes."""

    def __init__(self, name: str, **environment: str) -> None:
        self.pair = Pair(folders.data_dir() / "ha")
        self.servers = [self.pair]
        url = f"postgresql://{USER}@/{embedded.DATABASE}?host={self.pair.hosts}"
        super().__init__(name, **{"DATABASE_URL": url, **environment})

    def connect(self, database: str = embedded.DATABASE) -> Any:
        """Return a connection to the primary."""
        return psycopg2.connect(
            dbname=database, user=USER, host=self.pair.hosts, application_name="drill",
            target_session_attrs="read-write",
        )  # fmt: skip


class Pooled(Replicated):
    """Its processes know a PgBouncer in transaction mode alone; their role has the time-outs."""

    def __init__(self, name: str) -> None:
        self.pooler = Pooler(folders.data_dir() / "ha" / "p")
        url = f"postgresql://{USER}@/{embedded.DATABASE}?host={self.pooler.sockets}"
        super().__init__(name, DATABASE_URL=url, TRANSACTION_POOLER="1")
        self.servers = [self.pair, self.pooler]

    def start(self, *, fresh: bool = True) -> Self:
        """Start the servers, then the pooler, then the rest."""
        self.pair.start()
        for setting, value in session.SETTINGS.items():
            self.pair.primary.execute(f"ALTER ROLE {USER} SET {setting} = '{value}'")
        self.pooler.point(self.pair.primary.sockets)
        self.pooler.start()
        Stack.start(self, fresh=fresh)
        return self


class Watched(Beside):
    """Its processes ask sentinels for their Redis."""

    def __init__(self, name: str) -> None:
        self.sentinels = Sentinels(folders.data_dir() / "sentinels")
        super().__init__(name, REDIS_URL=self.sentinels.url)
        self.servers = [self.sentinels]

    @contextmanager
    def redis(self) -> "Iterator[redis.Redis]":
        """Yield a client of the master."""
        with self.sentinels.client() as client:
            yield client


KINDS: dict[str, type[Stack]] = {
    "": Stack,
    "flows": FlowsStack,
    "replicated": Replicated,
    "pooled": Pooled,
    "watched": Watched,
}
