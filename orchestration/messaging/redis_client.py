"""Clients of Redis by its URL: of one server, or of whichever Sentinel says is the master.

    sentinel://user:password@host1:26379,host2:26379/mymaster/0?password=of-the-sentinels

`sentinels://` is the same by TLS; options whose names begin with `ssl_` hold for the master as well. Each
new connection asks the sentinels, and one on which a former master refuses a write is closed: so after a
failover a client is at the new master by itself.
"""

from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import redis
import redis.asyncio
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
        sentinels=[_address(one) for one in hosts.split(",")],
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
    if found := master(url):
        options |= {**found.access, "sentinel_kwargs": _patience(found)}
        asked = Sentinel(found.sentinels, **options)  # type: ignore[no-untyped-call]
        there: redis.Redis = asked.master_for(found.name, redis.Redis)  # type: ignore[no-untyped-call]
        return there
    return redis.Redis.from_url(url, **options)


def async_client(url: str, **options: Any) -> redis.asyncio.Redis:
    """Return a client for use in an event loop."""
    if found := master(url):
        own = {**_patience(found), "retry": redis.asyncio.retry.Retry(NoBackoff(), 0)}
        options |= {**found.access, "sentinel_kwargs": own}
        asked = AsyncSentinel(found.sentinels, **options)  # type: ignore[no-untyped-call]
        there: redis.asyncio.Redis = asked.master_for(found.name, redis.asyncio.Redis)
        return there
    return redis.asyncio.Redis.from_url(url, **options)


def _patience(found: Master) -> dict[str, Any]:
    """Return the options for asking a sentinel: one that hangs must not keep the others from being asked."""
    return {
        **found.own,
        "socket_timeout": conf.REDIS_TIMEOUT_S / 4,
        "socket_connect_timeout": conf.REDIS_TIMEOUT_S / 4,
        "retry": Retry(NoBackoff(), 0),
        "driver_info": None,
    }
