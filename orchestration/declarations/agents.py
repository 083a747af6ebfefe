"""Problems of an agent: its actions, its address, and its policy."""

import inspect
from collections.abc import Iterable
from typing import Any

from ..agents.actions import Action
from ..agents.base import Agent
from ..agents.http import HttpAgent
from ..agents.webhook import Receiver
from ..cluster import heartbeat, leader_election
from ..messaging import queues
from ..registry import suggest
from . import first_values
from .problem import Problem, in_name

OWN = {
    name
    for kind in (Agent, HttpAgent, Receiver)
    for name in vars(kind)
    if not name.startswith("__")
}
ENGINES = {*leader_election.NAMES, heartbeat.WEB}  # names that it reports as served
A_TYPE = (
    "Annotate it with a dataclass, a msgspec Struct or a TypedDict that its module has when Django "
    "starts; or leave it out, and read `call.payload`."
)


def problems(agent: type[Agent]) -> Iterable[Problem]:
    """Yield what is wrong with an agent."""
    yield from in_name("agent", agent.name)
    reserved = agent.name in ENGINES or agent.name in queues.HANDLERS
    if reserved or str(agent.name).startswith(queues.STATUS_PREFIX):
        yield Problem(
            "E006",
            f"the name of the agent {agent.name!r} is that of a queue, or process, of the engine's own",
            "Its requests would go there: give the agent another name.",
        )
    if issubclass(agent, HttpAgent) and _is_without_address(agent):
        yield Problem(
            "E008", "it has no base_url", "base_url is the address of the service that it calls."
        )
    for name, method in agent.actions().items():
        if name in OWN and name != Agent.canary.__name__:
            yield Problem(
                "E013",
                f"its action {name!r} replaces a method that the engine calls",
                "Give the action another name.",
            )
        if not _is_awaited(method):
            yield Problem(
                "E003", f"its action {name!r} is a plain function", f"Write `async def {name}`."
            )
        if method.unread:
            yield Problem("E014", f"its action {name!r} takes a payload: {method.unread}", A_TYPE)
        yield from _guarded(name, method)
    if agent.can_receive():
        yield from _receiver(agent)
    yield from first_values.of_agent(agent.policy)


def _receiver(agent: type[Agent]) -> Iterable[Problem]:
    """Yield why webhooks could not be handed to an agent."""
    hint = "Write `@classmethod` and `def receive(cls, webhook)`."
    method = inspect.getattr_static(agent, "receive")
    if not isinstance(method, classmethod):
        yield Problem("E017", "its receive is not a class method", hint)
        return
    if inspect.iscoroutinefunction(method.__func__) or inspect.isasyncgenfunction(method.__func__):
        yield Problem("E017", "its receive is a coroutine: a web process calls it", hint)
    try:
        inspect.signature(method.__func__).bind(agent, "webhook")
    except TypeError:
        yield Problem("E017", "its receive does not take a webhook, and nothing else", hint)


def _is_without_address(agent: type[HttpAgent]) -> bool:
    """Return whether an agent has no address, and no code of its own that could set one."""
    return not getattr(agent, "base_url", "") and vars(agent).get("__init__") is None


def _guarded(name: str, method: Action) -> Iterable[Problem]:
    """Yield the guarded fields that an action does not accept: a mistyped one would guard nothing."""
    known = (method.accepts or {}).get("properties", method.guarded)
    for field in method.guarded:
        if field not in known:
            text = f"its action {name!r} guards {field!r}, which it does not accept"
            yield Problem("E012", f"{text}{suggest(field, known)}")


def _is_awaited(method: Any) -> bool:
    """Return whether a call is, or may be, a coroutine: by its definition, or by its annotation."""
    if inspect.iscoroutinefunction(inspect.unwrap(method)):
        return True
    gives = inspect.get_annotations(method).get("return")
    return gives in (Any, "Any") or any(kind in str(gives) for kind in ("Awaitable", "Coroutine"))
