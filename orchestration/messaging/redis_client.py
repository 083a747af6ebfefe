"""Clients of Redis by its URL: of one server, or of whichever Sentinel says is the master.

    sentinel://user:password@host1:26379,host2:26379/mymaster/0?password=of-the-sentinels

`sentinels://` is the same by TLS; options whose names begin with `ssl_` hold for the master as well. Each
new connection asks the sentinels, and one on which a former master refuses a write is closed: so after a
failover a client is at the new master by itself.

A connection that Redis, or what lies in between, closed while it was idle is replaced before it is used: no
command is lost, so none has to be repeated. One that vanished without a word is noticed by TCP: redis-py asks
for a sign of life after 30 s.
"""

import select
from asyncio import StreamReader, StreamWriter
from types import new_class
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import redis
import redis.asyncio
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from .. import conf

SCHEMES = {"sentinel": False, "sentinels": True}  # → whether TLS is used
PORT = 26379


class Master(NamedTuple):
    """What a `sentinel://` URL names; `access` is for the master, `own` for the sentinels."""

    sentinels: list[tuple[str, int]]
    name: str
    access: dict[str, Any]
    own: dict[str, Any]

    def for_rq(self) -> dict[str, Any]:
        """Return it as django-rq's settings of a queue."""
        return {
            "SENTINELS": self.sentinels,
            "MASTER_NAME": self.name,
            "CONNECTION_KWARGS": self.access,
            "SENTINEL_KWARGS": self.own,
        }


def master(url: str) -> Master | None:
    """Return the master that a URL names, or None if it names a server; raise ValueError if malformed."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        return None
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    name, _, number = parts.path.strip("/").partition("/")
    if not (hosts and name and (number or "0").isdecimal()):
        raise ValueError("a sentinel:// URL is sentinel://host:port,host:port/name of the master/0")
    tls = {"ssl": True} if SCHEMES[parts.scheme] else {}
    own = dict(parse_qsl(parts.query))
    access = {
        "username": unquote(user),
        "password": unquote(password),
        **{option: value for option, value in own.items() if option.startswith("ssl_")},
    }
    return Master(
        sentinels=[_address(host) for host in hosts.split(",")],
        name=name,
        access={
            "db": int(number or 0),
            **tls,
            **{key: value for key, value in access.items() if value},
        },
        own={**own, **tls},
    )


def _address(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    return parts.hostname or "localhost", parts.port or PORT


def client(url: str, **options: Any) -> redis.Redis:
    """Return a client; `options` are those of redis-py's connections."""
    if primary := master(url):
        options |= {**primary.access, "sentinel_kwargs": _sentinel_options(primary)}
        asked = Sentinel(primary.sentinels, **options)  # type: ignore[no-untyped-call]
        there: redis.Redis = asked.master_for(primary.name, redis.Redis)  # type: ignore[no-untyped-call]
        return there
    return redis.Redis.from_url(url, **options)


def async_client(url: str, **options: Any) -> redis.asyncio.Redis:
    """Return a client for use in an event loop."""
    if primary := master(url):
        own = {**_sentinel_options(primary), "retry": redis.asyncio.retry.Retry(NoBackoff(), 0)}
        options |= {**primary.access, "sentinel_kwargs": own}
        asked = AsyncSentinel(primary.sentinels, **options)  # type: ignore[no-untyped-call]
        made: redis.asyncio.Redis = asked.master_for(primary.name, redis.asyncio.Redis)
    else:
        made = redis.asyncio.Redis.from_url(url, **options)
    pool = made.connection_pool
    kind = pool.connection_class
    pool.connection_class = new_class(kind.__name__, (_Replaced, kind))
    return made


class _Replaced(AbstractConnection):
    """A connection that is replaced if it was closed meanwhile, as redis-py's synchronous ones are.

    The pool calls `connect` before each command. An event loop that has stood still does not know what came
    in, so this asks the socket. Nothing may lie there: no answer is awaited.
    """

    async def connect(self) -> None:
        if self._reader and self._writer and _has_ended(self._reader, self._writer):
            await self.disconnect(nowait=True)
        await super().connect()  # type: ignore[no-untyped-call]


def _has_ended(reader: StreamReader, writer: StreamWriter) -> bool:
    if reader.at_eof() or writer.is_closing():
        return True
    look = select.poll()
    look.register(writer.get_extra_info("socket"), select.POLLIN)
    return bool(look.poll(0))


def _sentinel_options(primary: Master) -> dict[str, Any]:
    """Return the options for asking a sentinel: one that hangs must not keep the others from being asked."""
    return {
        **primary.own,
        "socket_timeout": conf.REDIS_TIMEOUT_S / 4,
        "socket_connect_timeout": conf.REDIS_TIMEOUT_S / 4,
        "retry": Retry(NoBackoff(), 0),
        "driver_info": None,
    }
