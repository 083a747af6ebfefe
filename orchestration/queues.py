"""Messages and doorbells on Redis. With `jobs` and `workers` the only module that knows RQ or Redis.

Nothing here is the truth: a lost request or reply costs its step's deadline, a lost doorbell until
the supervisor rings again.

- A *list* carries messages: requests to one agent, or replies to the schedulers.
- A *doorbell* is an RQ job that says "there is work" on one queue. One that is ringing already is
  not rung twice: a flag is set if absent, and cleared by the worker *before* it looks.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import cache

import django_rq
from django.conf import settings
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from rq import Queue

from . import conf

logger = logging.getLogger(__name__)

SUBMISSION = "submission"
SCHEDULER = "scheduler"
REPLIES = "sas:replies"

# What each queue's doorbell runs; `workers` refuses every other function.
ANSWERS = {
    SUBMISSION: "orchestration.jobs.take_submissions",
    SCHEDULER: "orchestration.jobs.schedule",
}
CALL_AGENT = "orchestration.jobs.call_agent"
DELIVER_STATUS = "orchestration.jobs.deliver_status"
STATUS_PREFIX = "status."


class Unreachable(Exception):
    """Redis does not answer. Orders are safe; the supervisor rings again when it is back."""


def requests_of(agent: str) -> str:
    """Return the list of requests to an agent."""
    return f"sas:requests:{agent}"


def answer_to(queue: str) -> tuple[str, tuple[str, ...]]:
    """Return the function that answers a queue's doorbell, and its arguments."""
    if queue in ANSWERS:
        return ANSWERS[queue], ()
    if queue.startswith(STATUS_PREFIX):
        return DELIVER_STATUS, (queue.removeprefix(STATUS_PREFIX),)
    return CALL_AGENT, (queue,)


@cache
def connection() -> Redis:
    """Return this process's client: short timeouts, no silent retries (they send a job twice)."""
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=conf.REDIS_TIMEOUT,
        socket_connect_timeout=conf.REDIS_TIMEOUT,
        retry=Retry(NoBackoff(), 0),
    )


def worker_connection() -> Redis:
    """Return a client for a worker, which waits on its queue: RQ sets its time-outs."""
    return Redis.from_url(settings.REDIS_URL, retry=Retry(NoBackoff(), 0))


def queue(name: str, redis: Redis | None = None) -> Queue:
    """Return an RQ queue by its name in RQ_QUEUES."""
    return django_rq.get_queue(name, connection=redis or connection(), commit_mode="auto")


def flag(name: str) -> str:
    """Return the key that says a queue's doorbell is ringing."""
    return f"sas:ringing:{name}"


def enqueue(name: str) -> None:
    """Put the doorbell's job on the queue; the caller has set the flag."""
    function, arguments = answer_to(name)
    queue(name).enqueue_call(
        function,
        args=arguments,
        timeout=-1,
        result_ttl=0,
        failure_ttl=60,
        ttl=60,
        description=f"doorbell of {name}",
    )


def ring(name: str) -> None:
    """Wake a worker of queue `name`, unless its doorbell rings already; raise `Unreachable`."""
    try:
        if connection().set(flag(name), 1, nx=True, ex=conf.FLAG_LIFE):
            enqueue(name)
    except RedisError as error:
        raise Unreachable(str(error)) from error


def try_to_ring(name: str) -> bool:
    """Ring; say whether it worked. For whoever must go on in any case: the supervisor rings again."""
    try:
        ring(name)
    except Unreachable as error:
        logger.warning("cannot ring for %s (the supervisor will): %s", name, error)
        return False
    return True


def answer(name: str) -> None:
    """Clear the doorbell: whoever rings from now on wakes another worker. Call it before looking."""
    try:
        connection().delete(flag(name))
    except RedisError as error:
        raise Unreachable(str(error)) from error


def push(name: str, messages: Iterable[bytes]) -> None:
    """Append messages to a list; raise `Unreachable`. A list nobody reads does not grow for ever."""
    try:
        pipeline = connection().pipeline(transaction=False)
        pipeline.rpush(name, *messages)
        pipeline.ltrim(name, -conf.QUEUE_LIMIT, -1)
        pipeline.execute()
    except RedisError as error:
        raise Unreachable(str(error)) from error


def pop(name: str, limit: int) -> list[bytes]:
    """Take up to `limit` messages off a list; raise `Unreachable`."""
    try:
        return _as_messages(connection().lpop(name, limit))
    except RedisError as error:
        raise Unreachable(str(error)) from error


def _as_messages(taken: object) -> list[bytes]:
    return [bytes(item) for item in taken] if isinstance(taken, Sequence) else []


class AsyncMailbox:
    """An agent's side of the lists, in its event loop: requests come in, replies go out."""

    def __init__(self, agent: str) -> None:
        self._requests = requests_of(agent)
        self._redis: AsyncRedis | None = None

    def _connected(self) -> AsyncRedis:
        if self._redis is None:
            self._redis = AsyncRedis.from_url(
                settings.REDIS_URL,
                socket_timeout=conf.REDIS_TIMEOUT,
                socket_connect_timeout=conf.REDIS_TIMEOUT,
                retry=AsyncRetry(NoBackoff(), 0),
            )
        return self._redis

    async def take(self, limit: int, wait: float) -> list[bytes]:
        """Take up to `limit` requests, waiting up to `wait` seconds for the first; raise `Unreachable`."""
        try:
            messages = _as_messages(await self._connected().lpop(self._requests, limit))
            if not messages and (first := await self._connected().blpop([self._requests], wait)):
                messages = [bytes(first[1])]
        except RedisError as error:
            raise Unreachable(str(error)) from error
        return messages

    async def send(self, replies: Sequence[bytes]) -> bool:
        """Hand replies to the schedulers and ring; say whether Redis took them in the end."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + conf.SEND_PATIENCE
        while True:
            try:
                await self._try_to_send(replies)
            except RedisError as error:
                logger.warning("cannot send replies yet: %s", error)
                if loop.time() > give_up_at:
                    return False
                await asyncio.sleep(0.2)
            else:
                return True

    async def _try_to_send(self, replies: Sequence[bytes]) -> None:
        pipeline = self._connected().pipeline(transaction=False)
        pipeline.rpush(REPLIES, *replies)
        pipeline.set(flag(SCHEDULER), 1, nx=True, ex=conf.FLAG_LIFE)
        _, rang = await pipeline.execute()
        if rang:
            enqueue(SCHEDULER)

    async def close(self) -> None:
        """Close the connection."""
        if self._redis is not None:
            await self._redis.aclose()
            self._redis = None
