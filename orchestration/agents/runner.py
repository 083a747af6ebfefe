"""Serve one agent in one process: many calls at once, each reply sent as soon as it is ready."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import uvloop
from django.conf import settings

from .. import conf
from ..cluster import crash_points
from ..database import clock
from ..messaging import queues, redis_breaker
from ..messaging.agent_inbox import AgentInbox, PendingMessage, Taken
from ..messaging.messages import Malformed, Reply, Request
from ..states import Health
from ..tracing.subject import subject
from .base import Agent
from .errors import LONGEST_MESSAGE, TIMEOUT
from .finished_request import FinishedRequest
from .loop_watch import BLOCKED, Blocked, LoopWatch
from .performers import Performers
from .siblings import Siblings

logger = logging.getLogger(__name__)


class Runtime:
    """An agent's event loop, kept for the life of the process so that connections are reused."""

    def __init__(self, agent: Agent, tell: Callable[[Blocked], None] | None = None) -> None:
        self.agent = agent
        self.loop = uvloop.new_event_loop()
        self.performers = Performers(agent) if agent.isolated else None
        self.inbox = AgentInbox(agent.name, agent.instance)
        self.siblings = Siblings(self.inbox, agent.instance)
        self.slots = max(1, settings.AGENT_SLOTS.get(agent.name, agent.slots))
        self._calls: dict[asyncio.Task[None], Request] = {}
        self.watch = LoopWatch(agent.name, self._calls.get, tell)
        self._freed = asyncio.Event()
        self._stopping = threading.Event()

    def serve(self) -> None:
        """Serve requests until there are none left and every call has ended."""
        self.loop.run_until_complete(self._serve())

    def stop(self) -> None:
        """Take no more requests and finish the calls; safe to call from a signal handler."""
        self._stopping.set()

    def rest(self) -> None:
        """Release resources that an idle worker does not need."""
        if self.performers:
            self.performers.tidy()

    def close(self) -> None:
        """Close the connections and the loop."""
        self.watch.close()
        self.loop.run_until_complete(self._close())
        self.loop.close()

    async def _close(self) -> None:
        if self.performers:
            await self.performers.close()
        await self.agent.close()
        await self.inbox.close()

    async def _serve(self) -> None:
        """Take requests for the free slots only; other workers take the rest (P16)."""
        calls = self._calls
        ended: asyncio.Queue[FinishedRequest | None] = asyncio.Queue()
        sender = asyncio.create_task(self._send(ended))
        beat = asyncio.create_task(self.watch.beat())
        try:
            leaving = False
            # Taking is never cancelled: Redis may have handed over messages already.
            while not self._stopping.is_set():
                if not (room := self._room()):
                    await self._until_there_is_room()
                    continue
                messages = await self._take(room, 0 if leaving else conf.INBOX_IDLE_S)
                room = self._room()  # it may have shrunk: other workers take the rest
                await self._hand_back(_requests(messages[room:]))
                messages = messages[:room]
                for request in await self._new(messages, ended):
                    call = asyncio.create_task(self._call(request, ended))
                    calls[call] = request
                    call.add_done_callback(self._free)
                await asyncio.sleep(0)  # calls begin before Redis is asked for more
                if messages or calls or self.siblings.part.back_since is not None:
                    # a worker that has stepped back must not be called by the doorbell
                    leaving = False
                elif leaving:
                    break
                else:
                    await self.inbox.clear_doorbell()
                    leaving = True
            if self._stopping.is_set():
                await self.inbox.clear_doorbell()
        finally:
            if calls:
                await asyncio.wait(calls)
            ended.put_nowait(None)
            await sender
            beat.cancel()
            await asyncio.wait([beat])

    def _free(self, call: asyncio.Task[None]) -> None:
        del self._calls[call]
        self._freed.set()

    def _room(self) -> int:
        """Return how many requests may be begun now."""
        if self._stopping.is_set():
            return 0
        under_way = len(self._calls)
        return self.siblings.room(self.slots - under_way, under_way)

    async def _until_there_is_room(self) -> None:
        """Call another worker for the waiting messages; wait for a call to end, or a short while."""
        self._freed.clear()
        await self.inbox.call_another()
        if self.siblings.part.back_since is not None:
            await self.siblings.look()
        with suppress(TimeoutError):
            async with asyncio.timeout(conf.INBOX_IDLE_S):
                await self._freed.wait()

    async def _take(self, free: int, wait: float) -> list[bytes]:
        """Return messages of the inbox; nothing while Redis is away and calls are under way.

        Raising would wait for these calls; messages that arrive when Redis is back must not.
        """
        try:
            return await self.inbox.take(min(free, conf.BATCH_SIZE), wait)
        except redis_breaker.Unreachable:
            if not self._calls:
                raise
            await asyncio.sleep(conf.SEND_RETRY_INTERVAL_S)
            return []

    async def _new(
        self, messages: Sequence[bytes], ended: "asyncio.Queue[FinishedRequest | None]"
    ) -> list[Request]:
        """Return the requests in `messages` without those taken before: one may be delivered twice."""
        requests = [request for raw in _requests(messages) if (request := self._parse(raw))]
        if not requests:
            return []
        first = await self.inbox.first_time(
            [
                Taken(
                    step=request.step,
                    attempt=request.attempt,
                    name=f"{request.step}:{request.attempt}:{request.dispatch}:{request.passed}",
                    until=request.complete_by,
                )
                for request in requests
            ]
        )
        for request, new in zip(requests, first, strict=True):
            if not new:
                ended.put_nowait(FinishedRequest(request=request))
        return [request for request, new in zip(requests, first, strict=True) if new]

    def _parse(self, raw: bytes) -> Request | None:
        try:
            return Request.parse(raw)
        except Malformed as error:
            logger.error("a malformed request to %s was refused: %s", self.agent.name, error)
            return None

    async def _call(self, request: Request, ended: "asyncio.Queue[FinishedRequest | None]") -> None:
        subject.set(request)  # of this call's own asyncio task
        if request.action not in self.agent.actions() and await self._pass_on(request):
            ended.put_nowait(FinishedRequest(request=request))
            return
        crash_points.reached("agent.before_call", request.reference)
        began, ahead, begun = clock.now(), clock.ahead(), time.monotonic()
        reply = await self._answer(request)
        if reply is not None and reply.code == TIMEOUT and (blocked := self.watch.during(begun)):
            # it says nothing of the service
            reply = reply.altered(
                code=BLOCKED, message=str(blocked)[:LONGEST_MESSAGE], health=Health.NOTHING
            )
        crash_points.reached("agent.after_call", request.reference)
        if reply is None:
            logger.warning("%s of %s ran out of time", request.name, request.reference)
        finished = FinishedRequest(request=request, reply=reply, began=began)
        if began >= request.complete_by - conf.REPLY_MARGIN_S or clock.was_set(ahead):
            finished = finished._replace(began=None)
        ended.put_nowait(finished)

    async def _answer(self, request: Request) -> Reply | None:
        if self.performers is None:
            return await self.agent.answer(request)
        raw = await self.performers.answer(request)
        return Reply.parse(raw) if raw else None

    async def _pass_on(self, request: Request) -> bool:
        """Return a request for an unknown action to the inbox; return whether that worked.

        During a deploy a worker of the other release may know the action. The wait doubles each time, so
        that workers which all lack it do not pass it around in a tight loop.
        """
        wait = min(conf.PASS_ON_WAIT_S * 2.0**request.passed, conf.PASS_ON_WAIT_CAP_S)
        left = request.complete_by - conf.REPLY_MARGIN_S - clock.now()
        if request.passed >= conf.MAX_PASS_ONS or left < 2 * wait:
            return False
        await asyncio.sleep(wait)
        return await self._hand_back([request.altered(passed=request.passed + 1).dump()])

    async def _hand_back(self, messages: Sequence[bytes]) -> bool:
        handed = not messages or await self.inbox.hand_back(messages)
        if not handed:
            logger.error("Redis does not take %d requests back: they expire", len(messages))
        return handed

    async def _send(self, ended: "asyncio.Queue[FinishedRequest | None]") -> None:
        """Send replies in batches, each of some milliseconds: sending costs as much for one as for many."""
        more = True
        while more:
            batch = [await ended.get()]
            if len(self._calls) > 1:  # others than this may end at the same time
                await asyncio.sleep(conf.GATHER_REPLIES_S)
            while not ended.empty():
                batch.append(ended.get_nowait())
            more = batch[-1] is not None
            finished = [call for call in batch if call is not None]
            try:
                await self.siblings.compare(finished)
            except Exception:  # replies must be sent even if the siblings' reports are unusable
                logger.exception("%s cannot compare itself with others", self.agent.instance)
            replies = [
                PendingMessage(
                    message=self.siblings.attributed(call, call.reply).dump(),
                    until=call.request.complete_by,
                )
                for call in finished
                if call.reply is not None
            ]
            steps = [call.request.step for call in finished]
            if steps and not await self.inbox.send(replies, steps):
                logger.error("Redis does not take %d replies: their steps expire", len(replies))


def _requests(messages: Sequence[bytes]) -> list[bytes]:
    """Return the messages without those that only ask to look."""
    return [raw for raw in messages if raw != queues.LOOK]
