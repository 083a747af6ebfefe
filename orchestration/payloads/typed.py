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
    """The types that a function takes as its payload, and returns; None for plain JSON."""

    takes: type | None = None
    gives: type | None = None


@cache
def types_of(function: Callable[..., Any], position: int) -> Types:
    """Return the types that the annotations of a function name; its payload is the argument at `position`."""
    try:
        hints, names = get_type_hints(function), list(inspect.signature(function).parameters)
    except (
        NameError,
        TypeError,
        ValueError,
    ):  # names for type checkers only; no function of Python's
        return Types()
    payload = hints.get(names[position]) if position < len(names) else None
    gives = hints.get("return")
    return Types(payload if is_typed(payload) else None, gives if is_typed(gives) else None)


def is_typed(kind: Any) -> bool:
    """Return whether a type has fields of its own, and so a schema."""
    return isinstance(kind, type) and (
        is_dataclass(kind) or issubclass(kind, msgspec.Struct) or is_typeddict(kind)
    )


def schema(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of a type: an object with its fields and no others."""
    (found,), definitions = msgspec.json.schema_components(
        [kind], ref_template=DEFINITIONS + "{name}"
    )
    inlined: dict[str, Any] = _inlined(found, definitions, ())
    return {**inlined, "additionalProperties": False}


def _inlined(part: Any, definitions: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    """Return a part of a schema with what it refers to in place."""
    if isinstance(part, list):
        return [_inlined(one, definitions, within) for one in part]
    if not isinstance(part, Mapping):
        return part
    if (name := str(part.get("$ref", "")).removeprefix(DEFINITIONS)) in definitions:
        if name in within:
            raise TypeError(f"{name} contains itself: the schema of a payload is finite")
        return _inlined(definitions[name], definitions, (*within, name))
    return {
        key: _inlined(one, definitions, within)
        for key, one in part.items()
        if key != "title" or not isinstance(one, str)  # which may be the name of a field
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
