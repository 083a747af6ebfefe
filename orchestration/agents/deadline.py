"""The time that a request leaves for calls to its service (P9)."""

import asyncio
from collections.abc import Awaitable

from .. import conf
from ..database import clock
from ..messaging.messages import Request
from .actions import Call, Result
from .errors import TIMEOUT, Unknown
from .evidence import hear


class OutOfTime(Exception):
    """The complete-by time of a request has come, and there is no reply."""


def left(request: Request) -> float:
    """Return the seconds that a request has left for calls."""
    return request.complete_by - conf.REPLY_MARGIN_S - clock.now()


async def within(request: Request, result: Awaitable[Result | None], call: Call) -> Result | None:
    """Return the result of one try; raise `Unknown` after its timeout, as it may have had an effect.

    Raises `OutOfTime` if the time of the whole request is over before.
    """
    remaining = left(request)
    # the action's own timeout comes first, as its error says what it waited for
    allowed = call.timeout + conf.REPLY_MARGIN_S
    timer = asyncio.timeout(min(allowed, remaining))
    try:
        async with timer:
            return await result
    except TimeoutError as error:
        if remaining <= allowed and timer.expired():
            raise OutOfTime from error
        raise Unknown(TIMEOUT, f"no answer within {call.timeout:.1f} s") from error
    except Exception as error:
        hear(error, call.heard)
        raise
