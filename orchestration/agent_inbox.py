"""An agent's side of its inbox, in its event loop: requests come in, replies go out."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.conf import settings
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from . import clock, conf, queues
from .queues import SCHEDULER, Unreachable, as_messages, at_hand, flag, inbox, reports

logger = logging.getLogger(__name__)
NOTE_LIFE = 100_000  # seconds, of the note of what a worker holds: longer than any attempt
REPORT_LIFE = 60  # seconds
LONGEST_MARK = 86_400.0  # seconds; no attempt is allowed more


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A request that was taken: its name among all that were ever sent, and seconds that it has left."""

    step: int
    attempt: int
    name: str
    left: float


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A reply, and the complete-by time of its request: it is not sent after that."""

    reply: bytes
    until: float


class AgentInbox:
    """The inbox of one agent, as one worker of it (an instance's name) sees it."""

    def __init__(self, agent: str, worker: str) -> None:
        self._agent = agent
        self._worker = worker
        self._redis: Redis | None = None
        self._called_at = float(-conf.FLAG_LIFE)

    def _connected(self) -> Redis:
        if self._redis is None:
            self._redis = Redis.from_url(
                settings.REDIS_URL,
                socket_timeout=conf.REDIS_TIMEOUT,
                socket_connect_timeout=conf.REDIS_TIMEOUT,
                retry=Retry(NoBackoff(), 0),
                **queues.QUIETLY,
            )
        return self._redis

    async def take(self, limit: int, wait: float = 0) -> list[bytes]:
        """Take up to `limit` requests, waiting up to `wait` seconds for the first."""
        into = inbox(self._agent)
        try:
            messages = as_messages(await self._connected().lpop(into, limit))
            if not messages and wait and (first := await self._connected().blpop([into], wait)):
                messages = as_messages(first[1:])
        except RedisError as error:
            raise Unreachable(str(error)) from error
        return messages

    async def first_time(self, requests: Sequence[Taken]) -> list[bool]:
        """Mark requests as taken, by this worker; say of each whether it was not marked before.

        A request that was delivered twice must not be performed twice at the same time: its copies
        might be answered differently. Without Redis all count as new: the key still protects them.
        """
        try:
            pipeline = self._connected().pipeline(transaction=False)
            for one in requests:
                life = max(0.001, min(one.left, LONGEST_MARK))
                pipeline.set(f"sas:taken:{one.name}", 1, nx=True, px=max(1, int(life * 1000)))
            notes = (part for one in requests for part in (one.step, one.attempt))
            pipeline.hset(at_hand(self._worker), items=list(notes))
            pipeline.expire(at_hand(self._worker), NOTE_LIFE)
            return [bool(new) for new in (await pipeline.execute())[: len(requests)]]
        except RedisError as error:
            logger.warning("cannot tell whether requests are repeats: %s", error)
            return [True] * len(requests)

    async def hand_back(self, messages: Sequence[bytes]) -> bool:
        """Return requests, for another worker of the agent; say whether Redis took them."""
        return await self._insist(lambda: self._push(self._agent, messages, ()))

    async def leave(self) -> None:
        """Clear the doorbell; look once more after it."""
        try:
            await self._connected().delete(flag(self._agent))
        except RedisError as error:
            raise Unreachable(str(error)) from error

    async def call_another(self, *, in_any_case: bool = False) -> None:
        """Give the doorbell away, as this worker should not be alone: once in `conf.FLAG_LIFE`.

        Whoever rings from now on calls another worker; for what lies there already, or in any case, one
        is called here.
        """
        now = asyncio.get_running_loop().time()
        if now < self._called_at + conf.FLAG_LIFE:
            return
        self._called_at = now
        try:
            pipeline = self._connected().pipeline(transaction=False)
            pipeline.delete(flag(self._agent))
            pipeline.llen(inbox(self._agent))
            if (await pipeline.execute())[-1] or in_any_case:
                await self._connected().set(flag(self._agent), 1, nx=True, ex=conf.FLAG_LIFE)
                await asyncio.to_thread(queues.call_worker, self._agent)
        except (RedisError, queues.Unreachable) as error:
            logger.warning("cannot call another worker (the supervisor will): %s", error)

    async def exchange(self, report: bytes) -> tuple[dict[str, bytes], int]:
        """Leave a report for the agent's other workers; return theirs, and how many messages lie there.

        Without Redis there are none.
        """
        key = reports(self._agent)
        try:
            pipeline = self._connected().pipeline(transaction=False)
            pipeline.hset(key, self._worker, report)
            pipeline.expire(key, REPORT_LIFE)
            pipeline.hgetall(key)
            pipeline.llen(inbox(self._agent))
            *_, found, waiting = await pipeline.execute()
        except RedisError as error:
            logger.warning("cannot exchange reports: %s", error)
            return {}, 0
        return {
            worker: raw
            for name, raw in found.items()
            if (worker := name.decode(errors="replace")) != self._worker
        }, waiting

    async def forget_reports(self, workers: Sequence[str]) -> None:
        """Remove the reports of workers that have ended."""
        with suppress(RedisError):
            await self._connected().hdel(reports(self._agent), *workers)

    async def send(self, replies: Sequence[Answer], ended: Sequence[int]) -> bool:
        """Hand replies to the schedulers and ring; return whether Redis took them in the end.

        They are kept for a while if it is away, but none beyond its complete-by time (P9): from then on
        another worker may be at work on the step. `ended` are the steps whose attempts are over here.
        """

        def push() -> Awaitable[None]:
            now = clock.now()
            return self._push(SCHEDULER, [one.reply for one in replies if now < one.until], ended)

        return await self._insist(push)

    async def _insist(self, act: Callable[[], Awaitable[None]]) -> bool:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + conf.SEND_PATIENCE
        while True:
            try:
                await act()
            except RedisError as error:
                if loop.time() > give_up_at:
                    return False
                logger.warning("Redis is away, and what it should have is kept: %s", error)
                await asyncio.sleep(conf.SEND_PAUSE)
            else:
                return True

    async def _push(self, queue: str, messages: Sequence[bytes], ended: Sequence[int]) -> None:
        pipeline = self._connected().pipeline(transaction=False)
        if ended:
            pipeline.hdel(at_hand(self._worker), *map(str, ended))
        if messages:
            pipeline.rpush(inbox(queue), *messages)
            pipeline.set(flag(queue), 1, nx=True, ex=conf.FLAG_LIFE)
        rung = (await pipeline.execute())[-1]
        if messages and rung:
            # RQ knows no event loop; a doorbell that is lost here is rung again by the supervisor
            with suppress(RedisError):
                await asyncio.to_thread(queues.call_worker, queue)

    async def close(self) -> None:
        """Close the connection."""
        if self._redis is not None:
            await self._redis.aclose()
            self._redis = None
