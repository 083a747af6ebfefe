"""Scripted doubles of agents: the engine's own code calls them, and a script says how each call ends."""

import asyncio
import selectors
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .. import registry
from ..agents import payload_schemas
from ..agents.actions import Action, Call, Result, action
from ..agents.base import Agent
from ..agents.errors import Later, Rejected
from ..messaging.messages import Request
from .outcomes import Outcome, Scripted, done

Answer = TypeVar("Answer")
ASKED = "?"  # behind the name of an action: of the questions about what it accepted
OWN = frozenset(Agent.actions())  # that every agent has, such as "canary"
MADE_UP: Mapping[str, Any] = {
    "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}, "null": None
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Called:
    """A call that an agent got: `name` is "agent.action", `at` in seconds since the run began.

    `direction` is "do" or "undo". With `asked` it was the question whether an earlier call had its effect.
    """

    name: str
    step: str
    direction: str
    reference: str
    key: str
    attempt: int
    payload: dict[str, Any]
    at: float
    asked: bool = False


@dataclass(kw_only=True)
class Script:
    """What services do with the calls of actions: each takes the next outcome; the last one stays."""

    _outcomes: dict[tuple[str, str | None], list[Scripted]] = field(default_factory=dict)

    def set(self, name: str, outcomes: Sequence[Scripted], reference: str | None) -> None:
        """Set the outcomes of an action ("agent.action"), of all tasks or of one."""
        agent, _, act = name.removesuffix(ASKED).rpartition(".")
        declared = registry.get(registry.agents, "agent", agent)
        scripted = registry.get(declared.actions(), f"action of {agent!r}", act)
        if not outcomes:
            raise ValueError(f"{name}: give at least one outcome")
        for effect in (
            outcome.effect
            for outcome in outcomes
            if isinstance(outcome, Outcome) and outcome.effect
        ):
            _require_result(name, {**_made_up(scripted, f"{act}-1"), **effect})
        self._outcomes[name, reference] = list(outcomes)

    def answers(self, name: str, reference: str) -> Scripted | None:
        """Return what the service says next of a call that it accepted; None: that it goes on."""
        name = name + ASKED
        if (name, reference) in self._outcomes or (name, None) in self._outcomes:
            return self.next(name, reference)
        return None

    def next(self, name: str, reference: str) -> Scripted:
        """Return the outcome of the next call of an action; without a script it is done."""
        script = (
            self._outcomes.get((name, reference)) or self._outcomes.get((name, None)) or [done()]
        )
        return script.pop(0) if len(script) > 1 else script[0]


class Double(Agent):
    """Stands for an agent and its service, which does the work of a key once.

    `delivery` is the outcome of the last call, which says whether and when the agent replies.
    """

    declared: type[Agent]
    script: Script

    def __init__(self, instance: str = "agent") -> None:
        super().__init__(instance)
        self.delivery = done()
        self.calls: list[tuple[Call, bool]] = []
        self._effects: dict[str, Result] = {}
        self._refusals: dict[str, Rejected] = {}
        self._going_on: dict[str, Later] = {}
        self._made: dict[str, int] = defaultdict(int)

    def serve(self, call: Call) -> Result:
        """Do what the script says; a repeat of a key that had its effect gets the first result."""
        self.calls.append((call, False))
        self.delivery = done()
        if (known := self._known(call.key)) is not None:
            return known
        if call.key in self._going_on:
            raise self._going_on[call.key]
        return self._end(call, self.script.next(f"{self.name}.{call.action}", call.reference))

    def _end(self, call: Call, outcome: Scripted) -> Result:
        """Have a call end as the script says."""
        if not isinstance(outcome, Outcome):
            result = outcome(call)
            _require_result(f"{self.name}.{call.action}", result)
            return self._keep(call, result)
        self.delivery = outcome
        if outcome.effect is not None:
            self._keep(call, {**self._made_up(call.action), **outcome.effect})
        if outcome.fault is not None:
            fault = outcome.fault()
            if isinstance(fault, Rejected) and fault.stored:
                self._refusals[call.key] = fault
            if isinstance(fault, Later):
                self._going_on[call.key] = fault
            raise fault
        return self._effects.get(call.key, {})

    def known_result(self, call: Call) -> Result | None:
        """Answer the question about a key truthfully; what was accepted goes on as the script says."""
        self.calls.append((call, True))
        self.delivery = done()
        known = self._known(call.key)
        if known is not None or call.key not in self._going_on:
            return known
        answer = self.script.answers(f"{self.name}.{call.action}", call.reference)
        if answer is None:
            raise self._going_on[call.key]
        return self._end(call, answer)

    def _known(self, key: str) -> Result | None:
        if key in self._refusals:
            raise self._refusals[key]
        return self._effects.get(key)

    def _keep(self, call: Call, result: Result) -> Result:
        self._effects[call.key] = result
        return result

    def _made_up(self, act: str) -> Result:
        self._made[act] += 1
        return _made_up(self.declared.actions()[act], f"{act}-{self._made[act]}")


def _made_up(act: Action, text: str) -> Result:
    """Return values for the fields that the action's schema `returns` names."""
    result: Result = _value({"type": "object", **(act.returns or {})}, text)
    return result


def _value(schema: Mapping[str, Any], text: str) -> Any:
    """Return a value that a schema allows; `text` where it is a text."""
    match schema:
        case {"default": value} | {"const": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [first, *_]}:
            return _value(first, text)
        case {"type": [first, *_]}:
            return _value({**schema, "type": first}, text)
        case {"properties": fields}:
            return {name: _value(inner, text) for name, inner in fields.items()}
    return MADE_UP.get(str(schema.get("type")), text)


def _require_result(name: str, result: Result) -> None:
    """Raise ValueError unless the action named "agent.action" may return it."""
    agent, _, act = name.rpartition(".")
    try:
        payload_schemas.check_result(agent, act, result)
    except payload_schemas.Invalid as problem:
        raise ValueError(f"{name} cannot return {result}: {problem}") from None


async def _known_result(agent: Double, call: Call) -> Result | None:
    return agent.known_result(call)


def double(declared: type[Agent], script: Script) -> Double:
    """Return a double of an agent: with its name and actions, and `ask` or `look` if it has that."""
    members: dict[str, Any] = {"name": declared.name, "declared": declared, "script": script}
    for name in declared.actions().keys() - OWN:
        members[name] = _scripted(declared.actions()[name])
    if declared.can_look():
        members["ask" if declared.can_ask() else "look"] = _known_result
    kind: type[Double] = type(declared.__name__, (Double,), members)
    return kind("double")


def _scripted(declared: Action) -> Any:
    async def act(agent: Double, call: Call, *_payload: Any) -> Result:
        return agent.serve(call)

    scripted = action(accepts=declared.accepts, returns=declared.returns)(act)
    vars(scripted)["takes"] = declared.takes  # a request that it cannot be made from is refused
    return scripted


def called(
    agent: str, request: Request, calls: Iterable[tuple[Call, bool]], at: float
) -> list[Called]:
    """Return what an agent was called with for a request."""
    return [
        Called(
            name=f"{agent}.{call.action}",
            step=request.name,
            direction=request.key.split(":")[2],
            reference=call.reference,
            key=call.key,
            attempt=request.attempt,
            payload=call.payload,
            at=at,
            asked=asked,
        )
        for call, asked in calls
    ]


class _Impatient(selectors.DefaultSelector):
    """Waits for nothing: adds up the time that it was to wait."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout else timeout)
        if timeout and not ready:
            self.skipped += timeout
        return ready


class _SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop in which waiting takes no time."""

    def __init__(self) -> None:
        self._impatient = _Impatient()
        super().__init__(self._impatient)

    def time(self) -> float:
        return super().time() + self._impatient.skipped


def without_waiting(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run a coroutine that waits for timers only: pauses between tries take no time."""
    with asyncio.Runner(loop_factory=_SkippingLoop) as runner:
        return runner.run(work)
