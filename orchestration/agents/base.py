"""What every agent does with a request, whatever service it wraps (P2, P7–P9)."""

import asyncio
import inspect
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar

from .. import clock, conf
from ..messages import Reply, Request
from ..states import Outcome

logger = logging.getLogger(__name__)

QUICK_BACKOFF = 0.1  # seconds before the second try inside an attempt; doubles
LONGEST_MESSAGE = 500  # of a remote service's error text

Method = TypeVar("Method", bound=Callable[..., Awaitable[dict[str, Any]]])


class Fault(Exception):
    """An attempt that did not succeed. `code` is short and stable; `message` is for people."""

    outcome: ClassVar[Outcome]

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(f"{code}: {message}")
        self.code = _printable(code)[:100]
        self.message = _printable(message)[:LONGEST_MESSAGE]


class Transient(Fault):
    """The service did nothing, for now: a repeat may succeed."""

    outcome = Outcome.TRANSIENT


class Rejected(Fault):
    """The service refused for good: a repeat would not help (P25)."""

    outcome = Outcome.REJECTED


class Unknown(Fault):
    """The effect may have happened: only a repeat under the same key can tell."""

    outcome = Outcome.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Call:
    """One try of an action: what it is asked, and the limits it has.

    `key` goes to the service with every try (P2); `timeout` is the seconds this try may take.
    """

    key: str
    reference: str
    payload: dict[str, Any]
    timeout: float


def action(method: Method) -> Method:
    """Mark a method of an agent as an action that steps may name."""
    method.is_action = True  # type: ignore[attr-defined]
    return method


class Agent:
    """Wraps one remote service. Subclass it, set `name`, and write an `@action` per operation.

    An action is `async def reserve(self, call: Call) -> dict`: what it returns is the step's
    result (JSON). It raises `Transient`, `Rejected` or `Unknown`. It never repeats a call by
    itself and needs no deadline of its own: `perform` sees to both.
    """

    name: ClassVar[str]
    policy: ClassVar[dict[str, Any]] = {}  # what its policy starts with, where not the defaults

    def __init__(self, instance: str = "agent") -> None:
        self.instance = instance

    @classmethod
    @cache
    def actions(cls) -> dict[str, Callable[..., Awaitable[dict[str, Any]]]]:
        """Return the actions by name."""
        members = inspect.getmembers(cls, inspect.isfunction)
        return {name: member for name, member in members if getattr(member, "is_action", False)}

    async def close(self) -> None:
        """Release what the agent holds, such as connections."""

    async def perform(self, request: Request) -> Reply | None:
        """Carry out a request within its complete-by time; return None when that has passed (P9).

        Quick retries, with backoff and jitter, stay inside that time. A repeat carries the same
        key, so a service that did the work already answers with what it did.
        """
        started = clock.now()
        left = request.complete_by - conf.REPLY_MARGIN - started
        if left <= 0:
            return None
        try:
            async with asyncio.timeout(left):
                reply = await self._try(request, started)
        except TimeoutError:
            return None
        # a process that was stopped for a while may find an answer that came too late
        return reply if clock.now() < request.complete_by else None

    async def _try(self, request: Request, started: float) -> Reply:
        act = self.actions().get(request.action)
        if act is None:
            missing = f"agent {self.name!r} has no action {request.action!r}"
            return self._reply(request, started, 0, fault=Transient("no_such_action", missing))
        doubt: Unknown | None = None
        for count in range(1, request.tries + 1):
            try:
                result = await _within(act(self, call := self._call(request)), call.timeout)
            except Rejected as fault:
                return self._reply(request, started, count, fault=fault)
            except (Transient, Unknown) as fault:
                doubt = fault if isinstance(fault, Unknown) else doubt
                wait = QUICK_BACKOFF * 2 ** (count - 1) * (0.5 + random.random() / 2)  # noqa: S311
                room = request.complete_by - conf.REPLY_MARGIN - clock.now()
                if count == request.tries or room < wait + QUICK_BACKOFF:
                    # once in doubt, always in doubt: a later "did nothing" says nothing of before
                    return self._reply(request, started, count, fault=doubt or fault)
                await asyncio.sleep(wait)
            else:
                return self._reply(request, started, count, result=result)
        raise AssertionError("a request allows at least one try")

    def _call(self, request: Request) -> Call:
        left = request.complete_by - conf.REPLY_MARGIN - clock.now()
        return Call(
            key=request.key,
            reference=request.reference,
            payload=request.payload,
            timeout=min(request.call_timeout, max(left, 0.001)),
        )

    async def answer(self, request: Request) -> Reply | None:
        """Perform a request; a mistake in the agent's own code is an unknown outcome, not a crash."""
        started = clock.now()
        try:
            return _checked(await self.perform(request))
        except Exception as error:  # an agent's code may raise anything; others go on
            logger.exception("%s.%s failed on %s", self.name, request.action, request.reference)
            fault = Unknown("agent_error", f"{type(error).__name__}: {error}")
            return self._reply(request, started, 1, fault=fault)

    def _reply(
        self,
        request: Request,
        started: float,
        tries: int,
        *,
        result: dict[str, Any] | None = None,
        fault: Fault | None = None,
    ) -> Reply:
        return Reply(
            step=request.step,
            task=request.task,
            attempt=request.attempt,
            outcome=(fault.outcome if fault else Outcome.DONE).value,
            result=result or {},
            code=fault.code if fault else "",
            message=fault.message if fault else "",
            tries=tries,
            started=started,
            ended=clock.now(),
            by=self.instance,
        )


def _checked(reply: Reply | None) -> Reply | None:
    """Return the reply; raise if its result cannot travel, which must not spoil the others'."""
    if reply is not None:
        Reply.parse(reply.dump())
    return reply


async def _within(result: Awaitable[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Return the result of one try; past its time, whether it had an effect is unknown."""
    try:
        # a little more than the try's own time, so that an action can tell what it waited for
        return await asyncio.wait_for(result, seconds + conf.REPLY_MARGIN)
    except TimeoutError as error:
        raise Unknown("timeout", f"no answer within {seconds:.1f} s") from error


def _printable(text: str) -> str:
    """Return a remote service's text without what a terminal or a database could choke on."""
    clean = text.encode("utf-8", "replace").decode()
    return "".join(letter if letter.isprintable() else " " for letter in clean).strip()
