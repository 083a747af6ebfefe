"""What an action takes and gives, as JSON Schemas: for input changed, and results typed in, by hand."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from . import registry


class Invalid(ValueError):
    """A changed input, or a result given by hand, that is not what the action takes or gives."""


def check(agent: str, action: str, request: Mapping[str, Any], *, like: Mapping[str, Any]) -> None:
    """Raise `Invalid` unless `request` suits the action's schema, or else looks `like` the old one."""
    _validate(_schema(agent, action, "accepts") or shape(like), request, "the input")


def check_result(agent: str, action: str, result: Mapping[str, Any]) -> None:
    """Raise `Invalid` unless `result` suits what the action says it gives, if it says so."""
    _validate(_schema(agent, action, "returns") or {"type": "object"}, result, "the result")


def shape(value: Any) -> dict[str, Any]:  # noqa: PLR0911 - one for each JSON type
    """Return the schema of whatever has the same fields and types as `value`."""
    match value:
        case Mapping():
            fields = {name: shape(item) for name, item in value.items()}
            return {
                "type": "object", "properties": fields, "required": sorted(fields),
                "additionalProperties": False,
            }  # fmt: skip
        case list():
            return {"type": "array"}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
    return {}


def _schema(agent: str, action: str, name: str) -> dict[str, Any] | None:
    declared = registry.agents.get(agent)
    method = declared.actions().get(action) if declared else None
    schema: dict[str, Any] | None = getattr(method, name, None)
    return schema


def _validate(schema: Mapping[str, Any], value: Any, what: str) -> None:
    problems = sorted(Draft202012Validator(schema).iter_errors(value), key=str)
    if problems:
        told = "; ".join(
            f"{'.'.join(map(str, one.absolute_path)) or what}: {one.message}"
            for one in problems[:5]
        )
        raise Invalid(told)
