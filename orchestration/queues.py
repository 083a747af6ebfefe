"""Messages and doorbells on Redis. Only `jobs`, `workers` and `sounding` know RQ or Redis, too.

Nothing here is the truth: a lost request or reply costs its step's deadline, a lost doorbell until
the supervisor rings again.

- An *inbox* is a list of messages to the workers of one queue: requests to an agent, replies to the
  schedulers, and to anybody "look": there is work in the state store.
- A *doorbell* is an RQ job that says "there is work" on one queue. Its flag stays set while a
  worker is called or attends, so that nobody rings twice; who attends takes what comes into the
  inbox at once, without a job for each. The worker clears the flag *before* its last look. It also
  expires by itself, so that under lasting load further workers are called to help.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Any

import django_rq
from django.conf import settings
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from rq import Queue

from . import conf, registry

logger = logging.getLogger(__name__)

SUBMISSION = "submission"
SCHEDULER = "scheduler"
ALERTS = "alerts"
AUDIT = "audit"
PUSH = "push"
STATUS_PREFIX = "status."
# A connection does not send the client's version to Redis: reading it takes 2 ms and 2 MB each time.
QUIETLY: dict[str, Any] = {"driver_info": None}
LOOK = b"look"  # a message that only says: look at the state store

# What each queue's doorbell runs; `workers` refuses every other function.
ANSWERS = {
    SUBMISSION: "orchestration.jobs.take_submissions",
    SCHEDULER: "orchestration.jobs.schedule",
    ALERTS: "orchestration.jobs.send_notices",
    AUDIT: "orchestration.jobs.run_audit",
    PUSH: "orchestration.jobs.push_status",
}
CALL_AGENT = "orchestration.jobs.call_agent"
DELIVER_STATUS = "orchestration.jobs.deliver_status"


class Unreachable(Exception):
    """Redis does not answer. Orders are safe; the supervisor rings again when it is back."""


def answer_to(queue: str) -> tuple[str, tuple[str, ...]]:
    """Return the function that answers a queue's doorbell, and its arguments."""
    if queue in ANSWERS:
        return ANSWERS[queue], ()
    if queue.startswith(STATUS_PREFIX):
        return DELIVER_STATUS, (queue.removeprefix(STATUS_PREFIX),)
    return CALL_AGENT, (queue,)


def of_application(name: str) -> str:
    """Return the queue whose workers see to an application's status messages.

    Those of applications outside our processes are pushed, or lie there until they are fetched.
    """
    return STATUS_PREFIX + name if name in registry.receivers else PUSH


def inbox(queue: str) -> str:
    """Return the list of messages to a queue's workers."""
    return f"sas:inbox:{queue}"


def flag(queue: str) -> str:
    """Return the key that says that a queue's doorbell rings, or that a worker attends."""
    return f"sas:ringing:{queue}"


def connection() -> Redis:
    """Return this process's client: short timeouts, no silent retries (they send a job twice)."""
    # Two threads must not make one each: the client that nobody keeps closes its connections, also
    # those that its maker is using.
    with _connecting:
        return _connection()


_connecting = Lock()


@cache
def _connection() -> Redis:
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=conf.REDIS_TIMEOUT,
        socket_connect_timeout=conf.REDIS_TIMEOUT,
        retry=Retry(NoBackoff(), 0),
        **QUIETLY,
    )


def worker_connection() -> Redis:
    """Return a client for a worker, which waits on its queue: RQ sets its time-outs."""
    return Redis.from_url(settings.REDIS_URL, retry=Retry(NoBackoff(), 0), **QUIETLY)


def queue(name: str, redis: Redis | None = None) -> Queue:
    """Return an RQ queue by its name in RQ_QUEUES."""
    return django_rq.get_queue(name, connection=redis or connection(), commit_mode="auto")


def ring(name: str, messages: Sequence[bytes] = ()) -> None:
    """Put messages into a queue's inbox and have a worker look; raise `Unreachable`."""
    if name not in settings.RQ_QUEUES:
        raise Unreachable(f"there is no queue {name!r} in RQ_QUEUES")
    try:
        pipeline = connection().pipeline(transaction=False)
        pipeline.rpush(inbox(name), *(messages or [LOOK]))
        pipeline.ltrim(inbox(name), -conf.INBOX_LIMIT, -1)
        pipeline.set(flag(name), 1, nx=True, ex=conf.FLAG_LIFE)
        if pipeline.execute()[-1]:
            _enqueue(name)
    except RedisError as error:
        raise Unreachable(str(error)) from error


def try_to_ring(name: str, messages: Sequence[bytes] = ()) -> bool:
    """Ring; say whether it worked. For whoever must go on in any case: the supervisor rings again."""
    try:
        ring(name, messages)
    except Unreachable as error:
        logger.warning("cannot ring for %s (the supervisor will): %s", name, error)
        return False
    return True


def put_back(name: str, messages: Sequence[bytes]) -> None:
    """Return messages that were taken to their inbox; wait a while for a Redis that is away."""
    give_up_at = time.monotonic() + conf.SEND_PATIENCE
    while not try_to_ring(name, messages):
        if time.monotonic() > give_up_at:
            logger.error("Redis does not take %d messages back to %s", len(messages), name)
            return
        time.sleep(0.2)


def _enqueue(name: str) -> None:
    """Put the doorbell's job on the queue."""
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


def leave(name: str) -> None:
    """Clear the doorbell: whoever rings from now on calls a worker. Look once more after it."""
    try:
        connection().delete(flag(name))
    except RedisError as error:
        raise Unreachable(str(error)) from error


def take(name: str, limit: int, wait: float = 0) -> list[bytes]:
    """Take up to `limit` messages from an inbox; if it is empty, wait up to `wait` seconds for one."""
    into = inbox(name)
    try:
        messages = _as_messages(connection().lpop(into, limit))
        if not messages and wait and (first := connection().blpop([into], wait)):
            messages = _as_messages(first[1:])
    except RedisError as error:
        raise Unreachable(str(error)) from error
    return messages


def waiting(names: Sequence[str]) -> list[str]:
    """Return those of the queues whose inbox is not empty; raise `Unreachable`."""
    try:
        pipeline = connection().pipeline(transaction=False)
        for name in names:
            pipeline.llen(inbox(name))
        return [name for name, count in zip(names, pipeline.execute(), strict=True) if count]
    except RedisError as error:
        raise Unreachable(str(error)) from error


def _as_messages(taken: object) -> list[bytes]:
    return (
        [item for item in taken if isinstance(item, bytes)] if isinstance(taken, Sequence) else []
    )


class AgentInbox:
    """An agent's side, in its event loop: requests come in, replies go out to the schedulers."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._redis: AsyncRedis | None = None

    def _connected(self) -> AsyncRedis:
        if self._redis is None:
            self._redis = AsyncRedis.from_url(
                settings.REDIS_URL,
                socket_timeout=conf.REDIS_TIMEOUT,
                socket_connect_timeout=conf.REDIS_TIMEOUT,
                retry=AsyncRetry(NoBackoff(), 0),
                **QUIETLY,
            )
        return self._redis

    async def take(self, limit: int, wait: float = 0) -> list[bytes]:
        """Take up to `limit` requests, waiting up to `wait` seconds for the first."""
        into = inbox(self._agent)
        try:
            messages = _as_messages(await self._connected().lpop(into, limit))
            if not messages and wait and (first := await self._connected().blpop([into], wait)):
                messages = _as_messages(first[1:])
        except RedisError as error:
            raise Unreachable(str(error)) from error
        return messages

    async def first_time(self, names: Sequence[str], seconds: Sequence[float]) -> list[bool]:
        """Say of each request whether nobody has taken it before, for so many seconds to come.

        A request that was delivered twice must not be performed twice at the same time: its copies
        might be answered differently. Without Redis all count as new: the key still protects them.
        """
        try:
            pipeline = self._connected().pipeline(transaction=False)
            for name, life in zip(names, seconds, strict=True):
                pipeline.set(f"sas:taken:{name}", 1, nx=True, px=max(1, int(life * 1000)))
            return [bool(new) for new in await pipeline.execute()]
        except RedisError as error:
            logger.warning("cannot tell whether requests are repeats: %s", error)
            return [True] * len(names)

    async def leave(self) -> None:
        """Clear the doorbell; look once more after it."""
        try:
            await self._connected().delete(flag(self._agent))
        except RedisError as error:
            raise Unreachable(str(error)) from error

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
        pipeline.rpush(inbox(SCHEDULER), *replies)
        pipeline.set(flag(SCHEDULER), 1, nx=True, ex=conf.FLAG_LIFE)
        if (await pipeline.execute())[-1]:
            _enqueue(SCHEDULER)

    async def close(self) -> None:
        """Close the connection."""
        if self._redis is not None:
            await self._redis.aclose()
            self._redis = None
