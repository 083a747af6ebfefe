"""Call agents' actions from a command, to undo effects whose task is lost."""

import asyncio
from collections.abc import Sequence

from .. import registry
from ..database import clock
from ..messaging.messages import Reply, Request
from ..states import Outcome
from .base import Agent

AT_ONCE = 20  # tasks whose effects are taken back at the same time

# An agent's name, the seconds that it has for the request, and the request.
Undo = tuple[str, float, Request]


def take_back(undos: Sequence[Sequence[Undo]]) -> list[str]:
    """Send the undos of each task in turn; return for each task what went wrong, empty if nothing did.

    The first of a task that is not done ends it: what was done earlier must be taken back later.
    """
    return asyncio.run(_take_back(undos))


async def _take_back(undos: Sequence[Sequence[Undo]]) -> list[str]:
    names = {name for task in undos for name, *_ in task}
    agents = {name: registry.agents[name]("reconcile") for name in names}
    busy = asyncio.Semaphore(AT_ONCE)
    try:
        return await asyncio.gather(*(_in_turn(task, agents, busy) for task in undos))
    finally:
        for agent in agents.values():
            await agent.close()


async def _in_turn(undos: Sequence[Undo], agents: dict[str, Agent], busy: asyncio.Semaphore) -> str:
    async with busy:
        for name, seconds, request in undos:
            reply = await agents[name].answer(request.altered(complete_by=clock.now() + seconds))
            if reply is None or reply.outcome != Outcome.DONE:
                return f"{request.name}: {_trouble(reply)}"
    return ""


def _trouble(reply: Reply | None) -> str:
    """Return why an undo was not done."""
    if reply is None:
        return "no answer in time"
    return f"{reply.outcome} {reply.code} {reply.message}".strip()
