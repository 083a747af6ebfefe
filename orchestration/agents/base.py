"""What every agent does with a request, whatever service it wraps (P2, P7–P9)."""

import asyncio
import inspect
import logging
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar, cast

from .. import clock, conf
from ..ledger import LedgerEntry
from ..messages import Malformed, Mode, Reply, Request
from ..recovery import KEY_FORGOTTEN
from ..states import Health, Outcome
from .actions import Action, Call, Result, action
from .faults import Fault, Rejected, Transient, Unknown

logger = logging.getLogger(__name__)

QUICK_BACKOFF = 0.1  # seconds before the second try inside an attempt; doubles
FORGOTTEN = (
    "It may have been done, the service has forgotten the key by now, and it cannot be asked. Find "
    "out by hand; then say what was done, or that nothing was."
)


class Agent:
    """Wraps one remote service. Subclass it, set `name`, and write an `@action` per operation.

    An action is `async def reserve(self, call: Call) -> dict`: what it returns is the step's
    result (JSON). It raises `Transient`, `Rejected` or `Unknown`. It never repeats a call by
    itself and needs no deadline of its own: `perform` has both. How a step is undone is an action
    too. Where the service can be asked what came of a key, write `ask`.

    Set `isolated` where an action does more than to wait for its service, such as to run a library
    on what it is given: then what kills or blocks the process fails alone. It costs each request
    some 0.3 ms of CPU.
    """

    name: ClassVar[str]
    policy: ClassVar[dict[str, Any]] = {}  # what its policy starts with, where not the defaults
    isolated: ClassVar[bool] = False  # perform requests in a process that the worker can replace
    slots: ClassVar[int] = 100  # requests that one worker has at once; see also AGENT_SLOTS

    def __init__(self, instance: str = "agent") -> None:
        self.instance = instance

    @classmethod
    @cache
    def actions(cls) -> dict[str, Action]:
        """Return the actions by name."""
        members = inspect.getmembers(cls, inspect.isfunction)
        return {
            name: cast("Action", member)
            for name, member in members
            if getattr(member, "is_action", False)
        }

    @classmethod
    def can_ask(cls) -> bool:
        """Return whether its service can be asked what came of a key."""
        return cls.ask is not Agent.ask

    async def ask(self, call: Call) -> Result | None:
        """Ask the service what came of the call's key; never have anything done.

        Returns the action's result if it was done, None if the service knows of no effect: then
        it may be done under a new key, so None must never be a guess. Raises `Rejected` if it was
        refused, `Transient` or `Unknown` if there was no clear answer. Write it only where the
        answer is still right when the service has stopped to recognise repeats by the key.
        """
        raise NotImplementedError

    def ledger(self) -> Iterable[LedgerEntry] | None:
        """Return what the service says it did, oldest first, or None if it has no such list.

        For the audit, in a process of its own: it may block, and reads in pieces.
        """
        return None

    @action
    async def canary(self, _call: Call) -> Result:
        """Answer a canary task: this agent has a worker. The service is not called."""
        return {}

    async def close(self) -> None:
        """Release what the agent holds, such as connections."""

    async def perform(self, request: Request) -> Reply | None:
        """Carry out a request; stop when its complete-by time comes, and return None (P9).

        Quick retries, with backoff and jitter, stay inside that time. A repeat carries the same
        key, so a service that did the work already answers with what it did.
        """
        started = clock.now()
        left = request.complete_by - conf.REPLY_MARGIN - started
        if left <= 0:
            return None
        try:
            async with asyncio.timeout(left):
                return await self._try(request, started)
        except TimeoutError:
            return None

    async def _try(self, request: Request, started: float) -> Reply:
        act = self.actions().get(request.action)
        if act is None:
            missing = f"agent {self.name!r} has no action {request.action!r}"
            fault = Transient("no_such_action", missing, health=Health.NOTHING)
            return self._reply(request, started, 0, fault=fault)
        way = self._way(act, request.mode)
        if way is None:
            forgotten = Unknown(KEY_FORGOTTEN, FORGOTTEN, health=Health.NOTHING)
            return self._reply(request, started, 0, fault=forgotten)
        doubt: Unknown | None = None
        for count in range(1, request.tries + 1):
            try:
                result = await _within(way(call := self._call(request)), call.timeout)
            except Rejected as fault:
                doubtful = request.in_doubt or doubt is not None
                return await self._refused(request, started, count, fault, doubtful=doubtful)
            except (Transient, Unknown) as fault:
                doubt = fault if isinstance(fault, Unknown) else doubt
                wait = QUICK_BACKOFF * 2 ** (count - 1) * (0.5 + random.random() / 2)  # noqa: S311
                room = request.complete_by - conf.REPLY_MARGIN - clock.now()
                asked = fault.retry_after
                if count == request.tries or room < wait + QUICK_BACKOFF or asked is not None:
                    # once in doubt, always in doubt: a later "did nothing" says nothing of before
                    last = doubt or fault
                    return self._reply(request, started, count, fault=last, retry_after=asked)
                await asyncio.sleep(wait)
            else:
                return self._reply(request, started, count, result=result)
        raise AssertionError("a request allows at least one try")

    async def _refused(
        self, request: Request, started: float, count: int, refusal: Rejected, *, doubtful: bool
    ) -> Reply:
        """Return the reply to a refusal; while earlier calls are in doubt, ask about these first.

        That the service knows of no effect is then no answer: such a call may still be on its way.
        """
        # what is known already must still be replied in time
        left = request.complete_by - 3 * conf.REPLY_MARGIN - clock.now()
        if doubtful and not refusal.stored and self.can_ask() and left > 0:
            call = replace(self._call(request), timeout=min(request.call_timeout, left))
            try:
                result = await _within(self._ask(call), call.timeout)
            except Rejected as stored:
                refusal = stored
            except (Transient, Unknown) as fault:
                logger.info("%s cannot be asked about: %s", request.reference, fault)
            else:
                if result is not None:
                    return self._reply(request, started, count, result=result)
        in_doubt = False if refusal.stored else doubtful or refusal.in_doubt or None
        return self._reply(request, started, count, fault=refusal, in_doubt=in_doubt)

    async def _ask(self, call: Call) -> Result | None:
        """Ask what came of a key: a refusal is then what the service keeps under it."""
        try:
            return await self.ask(call)
        except Rejected as refusal:
            refusal.stored = True
            raise

    def _way(self, act: Action, mode: str) -> Callable[[Call], Awaitable[Result | None]] | None:
        """Return how to go about a request: act or ask; None if neither may be."""
        if mode != Mode.DO and self.can_ask():
            return self._ask
        return None if mode == Mode.ASK else partial(_perform, act, self)

    def _call(self, request: Request) -> Call:
        left = request.complete_by - conf.REPLY_MARGIN - clock.now()
        return Call(
            action=request.action,
            key=request.key,
            reference=request.reference,
            payload=request.payload,
            timeout=min(request.call_timeout, max(left, 0.001)),
        )

    async def answer(self, request: Request) -> Reply | None:
        """Return the reply to a request; None once its complete-by time has passed, whatever it is (P9).

        Code that blocks, or a process that was stopped for a while, may find its result or its error too
        late: then another instance may be at work on the step.
        """
        reply = await self._answer(request)
        return reply if clock.now() < request.complete_by else None

    async def _answer(self, request: Request) -> Reply | None:
        """Perform a request; a mistake in the agent's own code is an unknown outcome, not a crash."""
        started = clock.now()
        try:
            return _checked(await self.perform(request))
        except Malformed as error:
            logger.error("%s.%s of %s: %s", self.name, request.action, request.reference, error)
            what = f"the action's result cannot be stored: {error}"
            fault = Unknown("result_not_stored", what, health=Health.GOOD)
        except Exception as error:  # an agent's code may raise anything; others go on
            logger.exception("%s.%s failed on %s", self.name, request.action, request.reference)
            what = f"{type(error).__name__}: {error}"
            fault = Unknown("agent_error", what, health=Health.NOTHING)
        return self._reply(request, started, 1, fault=fault)

    def failed(self, request: Request, why: str) -> Reply:
        """Return the reply to a request that this agent's code failed on beyond all catching."""
        logger.error("%s.%s of %s: %s", self.name, request.action, request.reference, why)
        fault = Unknown("agent_error", why, health=Health.NOTHING)
        return self._reply(request, clock.now(), 1, fault=fault)

    def _reply(
        self,
        request: Request,
        started: float,
        tries: int,
        *,
        result: Result | None = None,
        fault: Fault | None = None,
        retry_after: float | None = None,
        in_doubt: bool | None = None,
    ) -> Reply:
        """Return the reply: a fault, a result, or neither, which is that nothing was done."""
        good = Outcome.ABSENT if result is None else Outcome.DONE
        return Reply(
            step=request.step,
            task=request.task,
            attempt=request.attempt,
            outcome=(fault.outcome if fault else good).value,
            result=result or {},
            code=fault.code if fault else "",
            message=fault.message if fault else "",
            tries=tries,
            started=started,
            ended=clock.now(),
            by=self.instance,
            retry_after=retry_after,
            generation=request.generation,
            dispatch=request.dispatch,
            in_doubt=in_doubt,
            health=(fault.health or "") if fault else "",
        )


def _checked(reply: Reply | None) -> Reply | None:
    """Return the reply; raise if its result cannot travel, which must not spoil the others'."""
    if reply is not None:
        Reply.parse(reply.dump())
    return reply


async def _perform(act: Action, agent: Agent, call: Call) -> Result:
    """Return the result of an action, which may be nothing in particular."""
    return await act(agent, call) or {}


async def _within(result: Awaitable[Result | None], seconds: float) -> Result | None:
    """Return the result of one try; past its time, whether it had an effect is unknown."""
    try:
        # a little more than the try's own time, so that an action can tell what it waited for
        async with asyncio.timeout(seconds + conf.REPLY_MARGIN):
            return await result
    except TimeoutError as error:
        raise Unknown("timeout", f"no answer within {seconds:.1f} s") from error
