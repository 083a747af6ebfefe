"""Problems of the first values that agents and steps give their thresholds."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db import models
from django.db.models import F, Q

from ..decisions.step_policy import OF_STEPS
from ..models import Policy
from ..registry import suggest
from .problem import Problem, shown

FIXED = {"agent", "updated_at"}  # of a policy: no threshold
COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "exact": operator.eq,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda value, several: value in several,
}
Fields = Mapping[str, "models.Field[Any, Any]"]


def thresholds() -> dict[str, "models.Field[Any, Any]"]:
    """Return the fields of a policy that an agent may give first values."""
    return {field.name: field for field in Policy._meta.fields if field.name not in FIXED}  # noqa: SLF001


def of_agent(policy: Any) -> Iterable[Problem]:
    """Yield what an agent's policy has wrong: names, types, then values that rules refuse."""
    if malformed := _malformed(policy, thresholds()):
        yield from malformed
        return
    values = _defaults() | dict(policy)
    for names, sentence in _broken(values):
        stated = ", ".join(f"{name}={values[name]!r}" for name in names)
        yield Problem("E007", f"its policy has {stated}: {sentence}")


def of_step(policy: Any, agents: Any) -> Iterable[Problem]:
    """Yield what a step's policy has wrong, also beside `agents`, the policy of its agent."""
    known = thresholds()
    of_steps = {name: known.pop(name) for name in OF_STEPS}
    services = [name for name in policy if name in known] if isinstance(policy, Mapping) else []
    for name in services:
        text = f"its policy has {name!r}, which is its agent's: it is about the service"
        yield Problem("E007", text, "Put it into the policy of the agent, for all that call it.")
    rest = {name: policy[name] for name in policy if name not in services} if services else policy
    if malformed := _malformed(rest, of_steps):
        yield from malformed
        return
    usable = {} if _malformed(agents, thresholds()) else dict(agents)
    values = _defaults() | usable | dict(rest)
    for names, sentence in _broken(values):
        own = [f"{name}={values[name]!r}" for name in names if name in rest]
        others = [f"{name}={values[name]!r}" for name in names if name not in rest]
        beside = f", and its agent's {', '.join(others)}" if others else ""
        if own:
            yield Problem("E007", f"its policy has {', '.join(own)}{beside}: {sentence}")


def _defaults() -> dict[str, Any]:
    return {name: field.get_default() for name, field in thresholds().items()}


def _malformed(policy: Any, known: Fields) -> list[Problem]:
    """Return the names that are no thresholds, and the values of other types."""
    if not isinstance(policy, Mapping):
        return [Problem("E007", f"its policy is {shown(policy)}, not a dict of thresholds")]
    return [
        Problem("E007", f"its policy has {name!r}{suggest(str(name), known)}")
        for name in policy
        if name not in known
    ] + [
        Problem("E007", f"its policy has {name}={value!r}: {expected}")
        for name, value in policy.items()
        if name in known and (expected := _expected(known[name], value))
    ]


def _broken(values: Mapping[str, Any]) -> Iterable[tuple[list[str], str]]:
    """Yield the rules that values break: the names that each is about, and its sentence."""
    for rule in Policy._meta.constraints:  # noqa: SLF001
        if isinstance(rule, models.CheckConstraint) and not _holds(rule.condition, values):
            about = _names(rule)
            yield [name for name in values if name in about], str(rule.violation_error_message)


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
