"""Problems of an agent: its actions, its address, and the first values of its policy."""

import inspect
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db import models
from django.db.models import F, Q

from ..agents.actions import Action
from ..agents.base import Agent
from ..agents.http import HttpAgent
from ..cluster import heartbeat, leader_election
from ..messaging import queues
from ..models import Policy
from ..registry import suggest
from .problem import Problem, in_name, shown

OWN = {name for kind in (Agent, HttpAgent) for name in vars(kind) if not name.startswith("__")}
ENGINES = {*leader_election.NAMES, heartbeat.WEB}  # names that it reports as served
A_TYPE = (
    "Annotate it with a dataclass, a msgspec Struct or a TypedDict that its module has when Django "
    "starts; or leave it out, and read `call.payload`."
)
FIXED = {"agent", "updated_at"}  # of a policy: no threshold
COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "exact": operator.eq,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda value, several: value in several,
}


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
    yield from _policy(agent.policy)


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


def thresholds() -> dict[str, "models.Field[Any, Any]"]:
    """Return the fields of a policy that an agent may give first values."""
    return {field.name: field for field in Policy._meta.fields if field.name not in FIXED}  # noqa: SLF001


def _policy(policy: Any) -> Iterable[Problem]:
    """Yield what an agent's policy has wrong: names, types, then values that rules refuse."""
    if not isinstance(policy, Mapping):
        yield Problem("E007", f"its policy is {shown(policy)}, not a dict of thresholds")
        return
    known = thresholds()
    malformed = [
        Problem("E007", f"its policy has {name!r}{suggest(str(name), known)}")
        for name in policy
        if name not in known
    ] + [
        Problem("E007", f"its policy has {name}={value!r}: {expected}")
        for name, value in policy.items()
        if name in known and (expected := _expected(known[name], value))
    ]
    yield from malformed
    if malformed:
        return
    values = {name: field.get_default() for name, field in known.items()} | dict(policy)
    for rule in Policy._meta.constraints:  # noqa: SLF001
        if isinstance(rule, models.CheckConstraint) and not _holds(rule.condition, values):
            named = ", ".join(f"{name}={values[name]!r}" for name in known if name in _names(rule))
            yield Problem("E007", f"its policy has {named}: {rule.violation_error_message}")


def _expected(field: "models.Field[Any, Any]", value: Any) -> str:
    """Return the requirement that a value does not meet, or ""."""
    if value is None:
        return "" if field.null else "give it a value, or leave it out"
    if field.choices:
        names = [str(name) for name, _ in field.flatchoices]
        return "" if value in names else f"it may be {', '.join(names)}"
    if isinstance(field, models.FloatField):
        is_number = isinstance(value, float | int) and not isinstance(value, bool)
        return "" if is_number and math.isfinite(value) else "it is a number"
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**15
    return "" if is_count else f"it is a whole number from 0 to {2**15 - 1:,}"


def _holds(condition: Any, values: Mapping[str, Any]) -> bool:
    """Return whether a constraint's condition holds, as the database would say."""
    if isinstance(condition, tuple):
        path, expected = condition
        name, _, lookup = path.partition("__")
        value = values[name]
        if lookup == "isnull":
            return bool((value is None) == expected)
        if isinstance(expected, F):
            expected = values[_named(expected)]
        known = value is not None and expected is not None
        return known and COMPARED[lookup or "exact"](value, expected)
    parts = (_holds(part, values) for part in condition.children)
    holds = all(parts) if condition.connector == Q.AND else any(parts)
    return holds is not condition.negated


def _named(column: F) -> str:
    """Return the field that an expression stands for."""
    name: str = vars(column)["name"]
    return name


def _names(rule: models.CheckConstraint) -> set[str]:
    """Return the fields that a constraint is about."""
    names: set[str] = set()
    left: list[Any] = [rule.condition]
    while left:
        part = left.pop()
        if isinstance(part, tuple):
            names.add(part[0].partition("__")[0])
            names |= {_named(part[1])} if isinstance(part[1], F) else set()
        else:
            left += part.children
    return names
