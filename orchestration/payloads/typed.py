"""Payloads and results as dataclasses or msgspec Structs: their JSON Schemas, and values of them."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_type_hints, is_typeddict

import msgspec

Kind = TypeVar("Kind")
DEFINITIONS = "#/$defs/"


class Types(NamedTuple):
    """The types that a function takes as its payload, and returns; None for plain JSON.

    `unread` is what keeps its payload from having a type, as the end of a sentence; empty if nothing does,
    or it can be called without one.
    """

    takes: type | None = None
    gives: type | None = None
    unread: str = ""


@cache
def types_of(function: Callable[..., Any], position: int) -> Types:
    """Return the types that the annotations of a function name; its payload is the argument at `position`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # no function of Python's
        return Types()
    payload = parameters[position] if position < len(parameters) else None
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError) as error:  # names for type checkers only
        return Types(unread=_unread(payload, f"has an annotation that fails: {error}"))
    gives = hints.get("return")
    gives = gives if is_typed(gives) else None
    takes = hints.get(payload.name) if payload else None
    if is_typed(takes):
        return Types(takes, gives)
    wrong = (
        f"is annotated with {takes!r}, which has no fields of its own"
        if takes
        else "has no annotation"
    )
    return Types(None, gives, _unread(payload, wrong))


def _unread(payload: inspect.Parameter | None, wrong: str) -> str:
    """Return what is wrong with a parameter, if its function cannot be called without it."""
    many = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    if payload is None or payload.default is not payload.empty or payload.kind in many:
        return ""
    return f"{payload.name!r} {wrong}"


def is_typed(kind: Any) -> bool:
    """Return whether a type has fields of its own, and so a schema."""
    return isinstance(kind, type) and (
        is_dataclass(kind) or issubclass(kind, msgspec.Struct) or is_typeddict(kind)
    )


def schema(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of a type: an object with its fields and no others."""
    (component,), definitions = msgspec.json.schema_components(
        [kind], ref_template=DEFINITIONS + "{name}"
    )
    inlined: dict[str, Any] = _inlined(component, definitions, ())
    return {**inlined, "additionalProperties": False}


def _inlined(part: Any, definitions: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    """Return a part of a schema with what it refers to in place."""
    if isinstance(part, list):
        return [_inlined(entry, definitions, within) for entry in part]
    if not isinstance(part, Mapping):
        return part
    if (name := str(part.get("$ref", "")).removeprefix(DEFINITIONS)) in definitions:
        if name in within:
            raise TypeError(f"{name} contains itself: the schema of a payload is finite")
        return _inlined(definitions[name], definitions, (*within, name))
    return {
        key: _inlined(value, definitions, within)
        for key, value in part.items()
        if key != "title" or not isinstance(value, str)  # which may be the name of a field
    }


def read(value: Any, kind: type[Kind]) -> Kind:
    """Return JSON as a value of a type; raise ValueError with what is wrong."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def plain(value: Any) -> Any:
    """Return a value as JSON; a dict is taken as it is."""
    return value if isinstance(value, dict) else msgspec.to_builtins(value)


def result(value: Any, kind: type | None, name: str) -> Any:
    """Return what `name` returned as JSON; raise TypeError if it is not of its declared type."""
    if kind is None:
        return plain(value)
    if value is None:
        raise TypeError(
            f"{name} returned nothing, and its annotation says {kind.__name__}: is a return missing?"
        )
    data = plain(value)
    try:
        read(data, kind)
    except ValueError as error:
        raise TypeError(f"{name} returned no {kind.__name__}: {error}") from None
    return data
