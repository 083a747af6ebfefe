"""Queue depths for pages, with a short timeout: a Redis that hangs must not block a page.

After a timeout, all calls fail at once for a while. So a page that makes several calls waits at most
once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from rq import Queue

from .. import conf
from . import queues, redis_client
from .redis_breaker import RedisCircuitBreaker, Unreachable


@dataclass(frozen=True, kw_only=True)
class Depth:
    """The depth of a queue: messages in its inbox, and unanswered doorbells.

    `rings`: the doorbell's flag is set, so a worker is called or serves the queue.
    """

    messages: int
    doorbells: int
    rings: bool


def client(url: str) -> Redis:
    """Return a client with the short timeout."""
    return redis_client.client(
        url,
        socket_timeout=conf.REDIS_PAGE_TIMEOUT_S,
        socket_connect_timeout=conf.REDIS_PAGE_TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
        **queues.NO_DRIVER_INFO,
    )


class _Client:
    """A client of one Redis, which remembers whether the last command timed out."""

    def __init__(self, url: str) -> None:
        self._breaker = RedisCircuitBreaker()
        self._client = client(url)

    def depths(self, names: Sequence[str]) -> dict[str, Depth]:
        with self._breaker.asking():
            pipeline = self._client.pipeline(transaction=False)
            for name in names:
                pipeline.llen(queues.inbox(name))
                pipeline.llen(f"{Queue.redis_queue_namespace_prefix}{name}")
                pipeline.exists(queues.flag(name))
            numbers = iter(pipeline.execute())
        return {
            name: Depth(messages=next(numbers), doorbells=next(numbers), rings=bool(next(numbers)))
            for name in names
        }


@cache
def _client_of(url: str) -> _Client:
    return _Client(url)


def depths(names: Sequence[str]) -> dict[str, Depth]:
    """Return the depth of each queue, in one round trip; raise `Unreachable`."""
    return _client_of(settings.REDIS_URL).depths(names)


def answers() -> bool:
    """Return whether Redis answers."""
    try:
        depths([queues.SCHEDULER])
    except Unreachable:
        return False
    return True
