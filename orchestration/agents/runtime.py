"""Serves one agent in one process: many calls at once, each reply sent as soon as it is there."""

import asyncio
import logging
from collections.abc import Sequence

from .. import clock, conf, crashpoints, queues
from ..messages import Malformed, Reply, Request
from .base import Agent

logger = logging.getLogger(__name__)


class Runtime:
    """An agent's event loop: kept for the life of the process, so that connections are reused."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.loop = asyncio.new_event_loop()
        self.inbox = queues.AgentInbox(agent.name)
        self.stopping = False

    def serve(self) -> None:
        """Take requests and answer them until there are none, and every call has ended."""
        self.loop.run_until_complete(self._serve())

    def close(self) -> None:
        """Close the connections and the loop."""
        self.loop.run_until_complete(self._close())
        self.loop.close()

    async def _close(self) -> None:
        await self.agent.close()
        await self.inbox.close()

    async def _serve(self) -> None:
        calls: set[asyncio.Task[None]] = set()
        replies: asyncio.Queue[Reply | None] = asyncio.Queue()
        sender = asyncio.create_task(self._send(replies))
        try:
            leaving = False
            # Taking is never cancelled: Redis may have handed over messages already.
            while not self.stopping:
                messages = await self.inbox.take(conf.BATCH, 0 if leaving else conf.LINGER)
                for request in await self._new(messages):
                    call = asyncio.create_task(self._call(request, replies))
                    calls.add(call)
                    call.add_done_callback(calls.discard)
                if messages or calls:
                    leaving = False
                elif leaving:
                    break
                else:
                    await self.inbox.leave()
                    leaving = True
            if self.stopping:
                await self.inbox.leave()
        finally:
            if calls:
                await asyncio.wait(calls)
            replies.put_nowait(None)
            await sender

    async def _new(self, messages: Sequence[bytes]) -> list[Request]:
        """Return the requests among `messages` that nobody has taken before: one may come twice."""
        requests = [
            request for raw in messages if raw != queues.LOOK if (request := self._parse(raw))
        ]
        if not requests:
            return []
        now = clock.now()
        new = await self.inbox.first_time(
            [f"{request.step}:{request.attempt}:{request.dispatch}" for request in requests],
            [request.complete_by - now for request in requests],  # after that nobody performs it
        )
        return [request for request, first in zip(requests, new, strict=True) if first]

    def _parse(self, raw: bytes) -> Request | None:
        try:
            return Request.parse(raw)
        except Malformed as error:
            logger.error("a malformed request to %s was refused: %s", self.agent.name, error)
            return None

    async def _call(self, request: Request, replies: "asyncio.Queue[Reply | None]") -> None:
        crashpoints.reached("agent.before_call", request.reference)
        reply = await self.agent.answer(request)
        crashpoints.reached("agent.after_call", request.reference)
        if reply is None:
            logger.warning("%s of %s ran out of time", request.name, request.reference)
        else:
            replies.put_nowait(reply)

    async def _send(self, replies: "asyncio.Queue[Reply | None]") -> None:
        """Send what is there; while that is under way, the next batch gathers."""
        more = True
        while more:
            batch = [await replies.get()]
            while not replies.empty():
                batch.append(replies.get_nowait())
            more = batch[-1] is not None
            messages = [reply.dump() for reply in batch if reply is not None]
            if messages and not await self.inbox.send(messages):
                logger.error("Redis does not take %d replies: their steps expire", len(messages))
