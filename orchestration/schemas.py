"""What an action takes and gives, as JSON Schemas: for input changed, and results typed in, by hand."""

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from . import registry
from .models import Step

DEEPEST = 50  # lists and objects inside one another
LOADED_LATER = {"description": "JSON; null: loaded when it is sent"}


class Invalid(ValueError):
    """A changed input, or a result given by hand, that is not what the action takes or gives."""


def parse(text: str) -> Any:
    """Return the JSON value that somebody typed; raise `Invalid` if it is none that can be kept."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise Invalid(error.msg) from None
    except RecursionError:
        raise Invalid("it is nested too deeply") from None
    except ValueError:  # also of a number of thousands of digits
        raise Invalid("it has a number that JSON has not, or that is too large") from None
    written(value)
    if _depth(value) > DEEPEST:
        raise Invalid("it is nested too deeply")
    return value


def written(value: Any) -> str:
    """Return a value as JSON; raise `Invalid` if it is none that can be kept.

    Python writes more than JSON is (NaN), and more than the database keeps (NUL, half a character).
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except TypeError as error:
        raise Invalid(f"it is not JSON: {error}") from None
    except RecursionError:
        raise Invalid("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise Invalid("it has half a character (a lone surrogate)") from None
    except ValueError:
        raise Invalid("it has a number that JSON has not, or that is too large") from None
    if "\\u0000" in text.replace("\\\\", ""):
        raise Invalid("it has a character of the code 0, which cannot be kept")
    return text


def check(step: Step, request: Mapping[str, Any]) -> None:
    """Raise `Invalid` unless `request` may take the place of a step's."""
    _validate(accepted(step), request, "the input")


def check_result(agent: str, action: str, result: Mapping[str, Any]) -> None:
    """Raise `Invalid` unless `result` suits what the action says it gives, if it says so."""
    _validate(returned(agent, action), result, "the result")


def accepted(step: Step) -> dict[str, Any]:
    """Return the schema of what a step's action takes; where it declares none, the request's shape.

    What is loaded when the request is sent may be null until then.
    """
    schema = _schema(step.agent, step.action, "accepts") or shape(step.request)
    later = {str(where[0]): LOADED_LATER for where, _ in step.loads or ()}
    if not later:
        return schema
    required = [name for name in schema.get("required", ()) if name not in later]
    return {**schema, "properties": {**schema.get("properties", {}), **later}, "required": required}


def returned(agent: str, action: str) -> dict[str, Any]:
    """Return the schema of what an action gives; where it declares none, of any object."""
    return _schema(agent, action, "returns") or {"type": "object"}


def problems(schema: Mapping[str, Any], value: Any) -> list[tuple[tuple[str, ...], str]]:
    """Return what is wrong with a value: (where, what), at most five; empty when it is valid."""
    found = sorted(Draft202012Validator(schema).iter_errors(value), key=str)
    return [(tuple(map(str, one.absolute_path)), one.message) for one in found[:5]]


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


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _depth(value: Any) -> int:
    """Return how many lists and objects are inside one another; no deeper than Python reads."""
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, list | dict)]:
        depth += 1
        level = [part for one in level for part in (one if isinstance(one, list) else one.values())]
    return depth


def _schema(agent: str, action: str, name: str) -> dict[str, Any] | None:
    declared = registry.agents.get(agent)
    method = declared.actions().get(action) if declared else None
    schema: dict[str, Any] | None = getattr(method, name, None)
    return schema


def _validate(schema: Mapping[str, Any], value: Any, what: str) -> None:
    if found := problems(schema, value):
        raise Invalid("; ".join(f"{'.'.join(where) or what}: {wrong}" for where, wrong in found))
