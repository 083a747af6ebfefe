"""Ask a service about what a person says was done; outside of its agent's workers."""

import asyncio
import logging
from typing import Any, Protocol

from .. import registry
from .actions import Call, Result
from .errors import Fault

logger = logging.getLogger(__name__)

TIMEOUT = 5.0  # seconds: a person waits for the answer


class StepByHand(Protocol):
    """The part of a step that this needs; agents do not know the models."""

    agent: str
    action: str
    request: Any
    charges: Any


def concerns_money(step: StepByHand) -> bool:
    """Return whether a step moves money, by its agent or by its workflow."""
    agent = registry.agents.get(step.agent)
    return step.charges is not None or (agent is not None and agent.moves_money)


def look_up(step: StepByHand, result: Result, *, reference: str) -> bool | None:
    """Return whether the service has a result that was entered; None if it cannot be asked, or tell."""
    agent = registry.agents.get(step.agent)
    if agent is None:
        return None
    call = Call(
        action=step.action, key="", reference=reference, payload=step.request, timeout=TIMEOUT
    )
    try:
        return asyncio.run(_ask(agent(f"{step.agent}-by-hand"), call, result))
    except (Fault, TimeoutError) as error:
        why = f"{type(error).__name__}: {error}"
        logger.warning("%s cannot be asked about %s: %s", step.agent, reference, why)
    except Exception:  # an agent's code may raise anything
        logger.exception("%s failed when it was asked about %s", step.agent, reference)
    return None


async def _ask(agent: Any, call: Call, result: Result) -> bool | None:
    try:
        async with asyncio.timeout(TIMEOUT):
            answer = await agent.look_up(call, result)
            if answer is None or isinstance(answer, bool):
                return answer
            raise TypeError(f"look_up returned {answer!r}, which is neither True, False nor None")
    finally:
        await agent.close()
