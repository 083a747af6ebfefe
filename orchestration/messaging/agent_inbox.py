"""The inbox of an agent on Redis, for use in its event loop: requests in, replies out."""

import asyncio
import logging
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from django.conf import settings
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from .. import conf
from ..database import clock
from . import queues, redis_client, signing
from .queues import SCHEDULER, as_messages, at_hand, flag, inbox, reports, taken
from .redis_breaker import Unreachable

logger = logging.getLogger(__name__)
# seconds that Redis keeps the list of a worker's requests: longer than any attempt
NOTE_LIFE = 100_000
REPORT_LIFE = 60  # seconds
LONGEST_MARK = 86_400.0  # seconds; no attempt may take longer


class Taken(NamedTuple):
    """A taken request: its unique `name`, and the time `until` which it may be performed."""

    step: int
    attempt: int
    name: str
    until: float


class PendingMessage(NamedTuple):
    """A message that waits for Redis, and the time until which it may be sent."""

    message: bytes
    until: float = math.inf


class AgentInbox:
    """The inbox of one agent, as one of its workers (an instance id) uses it."""

    def __init__(self, agent: str, worker: str) -> None:
        self._agent = agent
        self._worker = worker
        self._redis: Redis | None = None
        self._called_at = float(-conf.DOORBELL_TTL_S)

    def _connected(self) -> Redis:
        if self._redis is None:
            self._redis = redis_client.async_client(
                settings.REDIS_URL,
                socket_timeout=conf.REDIS_TIMEOUT_S,
                socket_connect_timeout=conf.REDIS_TIMEOUT_S,
                retry=Retry(NoBackoff(), 0),
                **queues.NO_DRIVER_INFO,
            )
        return self._redis

    async def take(self, limit: int, wait: float = 0) -> list[bytes]:
        """Take up to `limit` requests, waiting up to `wait` seconds for the first."""
        into = inbox(self._agent)
        redis = self._connected()
        try:
            if not wait:
                messages = as_messages(await redis.lpop(into, limit))
            else:
                popped = await redis.blmpop(wait, 1, into, direction="LEFT", count=limit)
                messages = as_messages(popped[1]) if popped else []
        except RedisError as error:
            raise Unreachable(str(error)) from error
        return signing.accepted(self._agent, messages)

    async def first_time(self, requests: Sequence[Taken]) -> list[bool]:
        """Mark requests as taken by this worker; return for each whether it was unmarked before.

        A request that is delivered twice must not be performed twice at once: the copies might get
        different replies. Without Redis all count as new; the idempotency key still protects them.
        A mark is kept until its request is not performed any more, by the clock of the workers.
        """
        now = clock.now()
        marks, notes = taken(self._agent), at_hand(self._worker)
        try:
            pipeline = self._connected().pipeline(transaction=True)
            pipeline.zremrangebyscore(marks, "-inf", now)
            pipeline.zmscore(marks, [request.name for request in requests])
            pipeline.zadd(
                marks,
                {request.name: min(request.until, now + LONGEST_MARK) for request in requests},
            )
            pipeline.expire(marks, NOTE_LIFE)
            pipeline.hset(
                notes,
                items=[part for request in requests for part in (request.step, request.attempt)],
            )
            pipeline.expire(notes, NOTE_LIFE)
            _, earlier, *_ = await pipeline.execute()
        except RedisError as error:
            logger.warning("cannot check whether requests are repeats: %s", error)
            return [True] * len(requests)
        unmarked = {
            request.name for request, at in zip(requests, earlier, strict=True) if at is None
        }
        first = []
        for request in requests:
            first.append(request.name in unmarked)
            unmarked.discard(request.name)  # a batch may have it twice
        return first

    async def hand_back(self, messages: Sequence[bytes]) -> bool:
        """Return requests to the inbox, for another worker; return whether Redis took them."""
        return await self._push(self._agent, [PendingMessage(message=raw) for raw in messages], ())

    async def clear_doorbell(self) -> None:
        """Clear the doorbell; the caller must look at the inbox once more afterwards."""
        try:
            await self._connected().delete(flag(self._agent))
        except RedisError as error:
            raise Unreachable(str(error)) from error

    async def call_another(self, *, even_if_empty: bool = False) -> None:
        """Release the doorbell, so that another worker helps: once in `conf.DOORBELL_TTL_S` at most.

        The next ring calls another worker. For messages that wait already, or with `even_if_empty`, this
        calls one.
        """
        now = asyncio.get_running_loop().time()
        if now < self._called_at + conf.DOORBELL_TTL_S:
            return
        self._called_at = now
        try:
            pipeline = self._connected().pipeline(transaction=False)
            pipeline.delete(flag(self._agent))
            pipeline.llen(inbox(self._agent))
            if (await pipeline.execute())[-1] or even_if_empty:
                await self._connected().set(flag(self._agent), 1, nx=True, ex=conf.DOORBELL_TTL_S)
                await asyncio.to_thread(queues.call_worker, self._agent)
        except (RedisError, Unreachable) as error:
            logger.warning("cannot call another worker (the supervisor will): %s", error)

    async def exchange(self, report: bytes) -> tuple[dict[str, bytes], int]:
        """Publish a report to the agent's other workers; return theirs, and how many messages wait.

        Without Redis both are empty.
        """
        key = reports(self._agent)
        try:
            pipeline = self._connected().pipeline(transaction=False)
            pipeline.hset(key, self._worker, report)
            pipeline.expire(key, REPORT_LIFE)
            pipeline.hgetall(key)
            pipeline.llen(inbox(self._agent))
            *_, published, waiting = await pipeline.execute()
        except RedisError as error:
            logger.warning("cannot exchange reports: %s", error)
            return {}, 0
        return {
            worker: raw
            for name, raw in published.items()
            if (worker := name.decode(errors="replace")) != self._worker
        }, waiting

    async def forget_reports(self, workers: Sequence[str]) -> None:
        """Remove the reports of workers that have ended."""
        with suppress(RedisError):
            await self._connected().hdel(reports(self._agent), *workers)

    async def send(self, replies: Sequence[PendingMessage], ended: Sequence[int]) -> bool:
        """Send replies to the schedulers and ring; return whether Redis took them.

        While Redis is away they are kept for a while, but none beyond its complete-by time (P9): after it
        another worker may work on the step. `ended` are the steps whose attempts ended here.
        """
        return await self._push(SCHEDULER, replies, ended)

    async def _push(
        self, queue: str, messages: Sequence[PendingMessage], ended: Sequence[int]
    ) -> bool:
        """Push messages that are still in time; repeat that while Redis is away."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + conf.SEND_RETRY_FOR_S
        while True:
            now = clock.now()
            due = [pending.message for pending in messages if now < pending.until]
            in_time = signing.sign(queue, due)
            try:
                await self._push_once(queue, in_time, ended)
            except RedisError as error:
                if loop.time() > give_up_at:
                    return False
                logger.warning("Redis is away; messages are kept: %s", error)
                await asyncio.sleep(conf.SEND_RETRY_INTERVAL_S)
            else:
                return True

    async def _push_once(self, queue: str, messages: Sequence[bytes], ended: Sequence[int]) -> None:
        pipeline = self._connected().pipeline(transaction=False)
        if ended:
            pipeline.hdel(at_hand(self._worker), *map(str, ended))
        if messages:
            pipeline.rpush(inbox(queue), *messages)
            pipeline.set(flag(queue), 1, nx=True, ex=conf.DOORBELL_TTL_S)
        rung = (await pipeline.execute())[-1]
        if messages and rung:
            # RQ is synchronous; the supervisor rings again for a doorbell that is lost here
            with suppress(RedisError):
                await asyncio.to_thread(queues.call_worker, queue)

    async def close(self) -> None:
        """Close the connection."""
        if self._redis is not None:
            await self._redis.aclose()
            self._redis = None
