"""The base class of agents: tries, deadlines, questions about an effect, replies (P2, P7–P9)."""

import asyncio
import inspect
import logging
import math
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from typing import ClassVar, cast

from msgspec import UNSET, UnsetType

from .. import conf
from ..database import clock
from ..decisions.backoff import backoff
from ..decisions.recovery import KEY_FORGOTTEN
from ..messaging.messages import Accepted, Evidence, Malformed, Mode, Reply, Request
from ..payloads import typed
from ..states import Health, Outcome
from ..tracing import spans, switch
from . import deadline
from .actions import Action, Call, Result, action, perform
from .errors import Fault, Later, Rejected, Transient, Unknown
from .evidence import evidence
from .policy_values import PolicyValues
from .questions import Question, Questions
from .service_ledger import LedgerEntry
from .webhook import Receiver

logger = logging.getLogger(__name__)

QUICK_BACKOFF = 0.1  # seconds before the second try inside an attempt; doubles
FORGOTTEN = (
    "The effect may have happened, and the service no longer remembers the key. Check with the "
    "service, then record what was done, or that nothing was done."
)


class Agent(Receiver, Questions):
    """Wraps one remote service. Subclass it, set `name`, and write an `@action` per operation.

    An action is `async def book(self, call: Call, guest: Guest) -> Room`, with dataclasses of what it takes
    and returns; without the second parameter it reads `call.payload`, and it may return a dict. It raises
    `Transient`, `Rejected` or `Unknown`. It does not repeat a call and needs no deadline: `perform` does
    both. The undo of a step is an action, too. Implement `ask` if the service can report results by key.

    Set `isolated` if an action does more than wait for its service, such as run a library on its input: then
    a request that kills or blocks its process fails alone. This costs about 0.3 ms of CPU per request.

    >>> class Printer(Agent):
    ...     name = "printer"
    ...     @action
    ...     async def print(self, call):
    ...         return {"pages": await print_once(call.payload["text"], job=call.key)}
    """

    name: ClassVar[str]
    policy: ClassVar[PolicyValues] = {}  # first values of thresholds; admins change them later
    isolated: ClassVar[bool] = False  # perform requests in a process that the worker can replace
    slots: ClassVar[int] = 100  # requests that one worker performs at once; see also AGENT_SLOTS
    in_tests: ClassVar["type[Agent] | None"] = None  # performs its requests in tests, not a double
    moves_money: ClassVar[bool] = False  # what was done by hand is looked up, or approved

    def __init__(self, instance: str = "agent") -> None:
        self.instance = instance

    @classmethod
    @cache
    def actions(cls) -> dict[str, Action]:
        """Return the actions by name."""
        members = inspect.getmembers(cls, inspect.isfunction)
        return {name: cast("Action", act) for name, act in members if hasattr(act, "is_action")}

    def ledger(self) -> Iterable[LedgerEntry] | None:
        """Return the service's own list of what it did, oldest first, or None if it has none.

        The audit reads it in a separate process, so it may block and read page by page.
        """
        return None

    def secrets(self) -> Iterable[str]:
        """Return credentials that must not be kept with a failure, beside those that names betray."""
        return ()

    @action
    async def canary(self, _call: Call) -> Result:
        """Answer a canary task, which shows that the agent has a worker. Does not call the service."""
        return {}

    async def close(self) -> None:
        """Release the agent's resources, such as connections."""

    async def perform(self, request: Request) -> Reply | None:
        """Perform a request; return None if its complete-by time comes first (P9).

        Quick retries, with backoff and jitter, stay within that time. A repeat carries the same key, so
        a service that has already done the work returns the earlier result.
        """
        started = clock.now()
        if deadline.left(request) <= 0:
            return None
        try:
            return await self._try(request, started)
        except deadline.OutOfTime:
            return None

    async def _try(self, request: Request, started: float) -> Reply:
        act = self.actions().get(request.action)
        if act is None:
            missing = f"agent {self.name!r} has no action {request.action!r}"
            fault = Transient("no_such_action", missing, health=Health.NOTHING)
            return self._reply(request, started, 0, fault=fault)
        call_or_ask = self._call_or_ask(act, request.mode)
        if call_or_ask is None:
            forgotten = Unknown(KEY_FORGOTTEN, FORGOTTEN, health=Health.NOTHING)
            return self._reply(request, started, 0, fault=forgotten)
        doubt: Unknown | None = None
        for count in range(1, request.tries + 1):
            call = self.as_call(request)
            try:
                result = await deadline.within(request, call_or_ask(call), call)
            except Later as fault:
                return self._accepted(request, started, count, fault)
            except Rejected as fault:
                doubtful = request.in_doubt or doubt is not None
                return await self._refused(request, started, count, fault, doubtful=doubtful)
            except (Transient, Unknown) as fault:
                doubt = fault if isinstance(fault, Unknown) else doubt
                wait = backoff(QUICK_BACKOFF, math.inf, count, random.random())  # noqa: S311
                room = deadline.left(request)
                asked = fault.retry_after
                if count == request.tries or room < wait + QUICK_BACKOFF or asked is not None:
                    # a later "did nothing" does not resolve the doubt about an earlier try
                    last = doubt or fault
                    return self._reply(request, started, count, fault=last, retry_after=asked)
                logger.debug("%s: again in %.1f s", fault.code, wait)
                await asyncio.sleep(wait)
            else:
                return self._reply(request, started, count, result=result)
        raise AssertionError("a request allows at least one try")

    def _accepted(self, request: Request, started: float, count: int, fault: Later) -> Reply:
        """Return the reply to a request that the service accepted."""
        look = (fault.look or 0.0) if self.can_look() else None
        reply = self._reply(request, started, count, fault=fault, result=fault.accepted)
        return reply.altered(wait=Accepted(id=fault.id, look=look), evidence=UNSET)

    async def _refused(
        self, request: Request, started: float, count: int, refusal: Rejected, *, doubtful: bool
    ) -> Reply:
        """Return the reply to a refusal; ask first about earlier calls that are in doubt.

        An answer of "no effect" does not resolve the doubt: an earlier call may still be on its way.
        """
        # leaves time to reply with the refusal if the question takes too long
        left = request.complete_by - 3 * conf.REPLY_MARGIN_S - clock.now()
        if doubtful and not refusal.stored and self.can_ask() and left > 0:
            call = replace(self.as_call(request), timeout=min(request.call_timeout, left))
            try:
                result = await deadline.within(request, self._ask(self.ask, call), call)
            except Rejected as stored:
                refusal = stored
            except (Transient, Unknown) as fault:
                logger.info("%s cannot be asked about: %s", request.reference, fault.code)
            else:
                if result is not None:
                    return self._reply(request, started, count, result=result)
        in_doubt = False if refusal.stored else doubtful or refusal.in_doubt or None
        return self._reply(request, started, count, fault=refusal, in_doubt=in_doubt)

    async def _ask(self, question: Question, call: Call) -> Result | None:
        """Ask for the result; mark a refusal as the one that the service stored under the key."""
        try:
            answer = await question(call)
        except Rejected as refusal:
            refusal.stored = True
            raise
        if answer is None:
            return None
        gives = self.actions()[call.action].gives
        result: Result = typed.result(answer, gives, f"the question about {call.action}")
        return result

    def _call_or_ask(
        self, act: Action, mode: str
    ) -> Callable[[Call], Awaitable[Result | None]] | None:
        """Return the action, or the question about its effect; None if the mode allows neither."""
        if mode == Mode.LOOK:
            return partial(self._ask, self.look) if self.can_look() else None
        if mode != Mode.DO and self.can_ask():
            return partial(self._ask, self.ask)
        return None if mode == Mode.ASK else partial(perform, act, self)

    def as_call(self, request: Request) -> Call:
        """Return a request as one call to the service."""
        return Call(
            action=request.action,
            key=request.key,
            reference=request.reference,
            payload=request.payload,
            timeout=min(request.call_timeout, max(deadline.left(request), 0.001)),
            attempt=request.attempt,
            in_doubt=request.in_doubt, accepted=request.accepted,
        )  # fmt: skip

    async def answer(self, request: Request) -> Reply | None:
        """Return the reply to a request; None if its complete-by time has passed (P9).

        Code that blocks, or a process that was suspended, may have its result too late: another instance
        may be working on the step by then.
        """
        began = clock.now() if switch.ON else 0.0
        reply = await self._answer(request)
        if switch.ON:
            outcome = reply.outcome if reply and clock.now() < request.complete_by else ""
            spans.worked(request, f"{self.name}.{request.action}", outcome, began)
        return reply if clock.now() < request.complete_by else None

    async def _answer(self, request: Request) -> Reply | None:
        """Perform a request; an error in the agent's code becomes an unknown outcome, not a crash."""
        started = clock.now()
        try:
            reply = await self.perform(request)
            return reply and reply.verified()  # so that it fails alone
        except Malformed as error:
            logger.error("%s.%s of %s: %s", self.name, request.action, request.reference, error)
            what = f"the action's result cannot be stored: {error}"
            fault = Unknown("result_not_stored", what, health=Health.GOOD)
        except Exception as error:  # an agent's code may raise anything; others go on
            logger.exception("%s.%s failed on %s", self.name, request.action, request.reference)
            what = f"{type(error).__name__}: {error}"
            fault = Unknown("agent_error", what, health=Health.NOTHING)
            fault.raised = error
        return self._reply(request, started, 1, fault=fault)

    def failed(self, request: Request, why: str) -> Reply:
        """Return the reply to a request whose process died or hung in this agent's code."""
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
        """Return the reply: a fault, a result, or neither if the service knows of no effect."""
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
            evidence=self._evidence(fault) if fault else UNSET,
            look=request.look or UNSET,
        )

    def _evidence(self, fault: Fault) -> Evidence | UnsetType:
        """Return what is kept of a failure: nothing, if the agent cannot name its credentials."""
        try:
            return evidence(fault, fault.raised, self.secrets())
        except Exception:  # the agent's own code again, such as its headers
            logger.exception("%s: what shows a failure is not kept", self.name)
            return UNSET
