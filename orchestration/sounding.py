"""What lies on Redis, for pages that only look: a Redis that hangs must not hang them.

A look waits briefly; after one in vain none waits for a while, whoever asks. So a page that asks for
several things waits at most once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from rq import Queue

from . import conf, queues


@dataclass(frozen=True, kw_only=True)
class Depth:
    """What lies on a queue: messages in its inbox, doorbells nobody has answered, and its flag.

    `rings` says that a worker is called or attends: nobody need ring.
    """

    messages: int
    doorbells: int
    rings: bool


class _Lookout:
    """A client of one Redis, with what it remembers of the last look."""

    def __init__(self, url: str) -> None:
        self._patience = queues.Patience()
        self._client = Redis.from_url(
            url,
            socket_timeout=conf.REDIS_LOOK,
            socket_connect_timeout=conf.REDIS_LOOK,
            retry=Retry(NoBackoff(), 0),
            **queues.QUIETLY,
        )

    def depths(self, names: Sequence[str]) -> dict[str, Depth]:
        with self._patience.asking():
            pipeline = self._client.pipeline(transaction=False)
            for name in names:
                pipeline.llen(queues.inbox(name))
                pipeline.llen(f"{Queue.redis_queue_namespace_prefix}{name}")
                pipeline.exists(queues.flag(name))
            told = iter(pipeline.execute())
        return {
            name: Depth(messages=next(told), doorbells=next(told), rings=bool(next(told)))
            for name in names
        }


@cache
def _lookout(url: str) -> _Lookout:
    return _Lookout(url)


def depths(names: Sequence[str]) -> dict[str, Depth]:
    """Return what lies on each queue, in one exchange; raise `queues.Unreachable`."""
    return _lookout(settings.REDIS_URL).depths(names)


def answers() -> bool:
    """Return whether Redis answers."""
    try:
        depths([queues.SCHEDULER])
    except queues.Unreachable:
        return False
    return True
