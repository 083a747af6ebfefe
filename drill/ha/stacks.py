"""Stacks whose Postgres or Redis can be lost, as another server takes over."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2  # type: ignore[import-untyped]
import redis

from drill.ha.pooler import Pooler
from drill.ha.postgres import Pair
from drill.ha.sentinel import Sentinels
from drill.stack import Stack
from orchestration.database import session
from sasweb.stack import embedded, folders

USER = "postgres"


class Replicated(Stack):
    """Its processes know both servers; so do its own connections, and use the one that takes writes."""

    def __init__(self, name: str, **environment: str) -> None:
        self.pair = Pair(folders.data_dir() / "ha")
        url = f"postgresql://{USER}@/{embedded.DATABASE}?host={self.pair.hosts}"
        super().__init__(name, **{"DATABASE_URL": url, **environment})

    def start(self, *, fresh: bool = True) -> "Replicated":
        """Start the servers, then the rest."""
        self.pair.start()
        super().start(fresh=fresh)
        return self

    def stop(self) -> None:
        """Stop all, the servers last."""
        try:
            super().stop()
        finally:
            self.pair.stop()

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

    def start(self, *, fresh: bool = True) -> "Pooled":
        """Start the servers, then the pooler, then the rest."""
        self.pair.start()
        for setting, value in session.SETTINGS.items():
            self.pair.primary.execute(f"ALTER ROLE {USER} SET {setting} = '{value}'")
        self.pooler.point(self.pair.primary.sockets)
        self.pooler.start()
        Stack.start(self, fresh=fresh)
        return self

    def stop(self) -> None:
        """Stop all, the servers last."""
        try:
            super().stop()
        finally:
            self.pooler.stop()


class Watched(Stack):
    """Its processes ask sentinels for their Redis."""

    def __init__(self, name: str) -> None:
        self.sentinels = Sentinels(folders.data_dir() / "sentinels")
        super().__init__(name)

    def start(self, *, fresh: bool = True) -> "Watched":
        """Start the servers, then the rest."""
        self.sentinels.start()
        self.environment["REDIS_URL"] = self.sentinels.url
        super().start(fresh=fresh)
        return self

    def stop(self) -> None:
        """Stop all, the servers last."""
        try:
            super().stop()
        finally:
            self.sentinels.stop()

    @contextmanager
    def redis(self) -> "Iterator[redis.Redis]":
        """Yield a client of the master."""
        with self.sentinels.client() as client:
            yield client


KINDS: dict[str, type[Stack]] = {
    "": Stack,
    "replicated": Replicated,
    "pooled": Pooled,
    "watched": Watched,
}
