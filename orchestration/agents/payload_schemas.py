"""Validate payloads and results that people enter against the JSON Schemas of actions."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, cast

from jsonschema import Draft202012Validator, ValidationError

from .. import registry
from ..payloads.limits import why_not_kept
from ..payloads.placeholders import placeholders
from ..payloads.text import READER, as_text
from ..states import LOCAL

MISSING = "a value is missing"
KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object {…}",
    "array": "a list […]",
}
Computed = tuple[str, str]
LOADED_LATER = {"description": "if null, loaded when the request is sent"}


class RequestedStep(Protocol):
    """The part of a step that its request needs; agents do not know the models."""

    @property
    def agent(self) -> str: ...  # noqa: D102 - columns of the table
    @property
    def action(self) -> str: ...  # noqa: D102
    @property
    def request(self) -> Any: ...  # noqa: D102
    @property
    def loads(self) -> Any: ...  # noqa: D102


class Invalid(ValueError):
    """A payload or result that does not match its schema, or cannot be stored."""


def parse(text: str) -> Any:
    """Return the JSON value in a text that a person entered; raise `Invalid` if it cannot be stored."""
    try:
        value = READER.decode(text)
    except json.JSONDecodeError as error:
        raise Invalid(error.msg) from None
    except RecursionError:
        raise Invalid("it is nested too deeply") from None
    except ValueError:  # also raised for a number with thousands of digits
        raise Invalid("it has a number that JSON does not allow, or that is too large") from None
    written(value)
    return value


def written(value: Any) -> str:
    """Return a value as JSON; raise `Invalid` if it cannot be stored.

    Python writes more than JSON allows (NaN), and more than the database stores (NUL, lone surrogates).
    """
    try:
        text = as_text(value)
        text.encode()
    except TypeError as error:
        raise Invalid(f"it is not JSON: {error}") from None
    except RecursionError:
        raise Invalid("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise Invalid("it has half a character (a lone surrogate)") from None
    except ValueError:
        raise Invalid("it has a number that JSON does not allow, or that is too large") from None
    if "\\u0000" in text.replace("\\\\", ""):
        raise Invalid("it has a character of the code 0, which cannot be kept")
    if why := why_not_kept(text, value):
        raise Invalid(why)
    return text


def check(step: RequestedStep, request: Mapping[str, Any]) -> None:
    """Raise `Invalid` unless `request` can replace the step's request."""
    _validate(accepted(step), request, "the input")


def check_declared(step: RequestedStep, request: Mapping[str, Any]) -> None:
    """Raise `Invalid` unless `request` matches the schema of the step's action, if it has one."""
    if _declared(step.agent, step.action, "accepts"):
        check(step, request)


def check_result(
    agent: str, action: str, result: Mapping[str, Any], *, computed: Computed | None = None
) -> None:
    """Raise `Invalid` unless `result` matches the schema of what the step returns, if it has one."""
    _validate(returned(agent, action, computed=computed), result, "the result")


def check_report(workflow: str, step: str, result: Mapping[str, Any]) -> None:
    """Raise `Invalid` unless `result` matches what a declared step returns, if that is known."""
    if declared := registry.step(workflow, step):
        check_result(declared.agent, declared.action, result, computed=(workflow, declared.name))


def accepted(step: RequestedStep) -> dict[str, Any]:
    """Return the payload schema of a step's action; without one, the shape of the step's request.

    A field that is loaded when the request is sent may be null until then.
    """
    schema = _declared(step.agent, step.action, "accepts") or shape(step.request)
    later = {str(where[0]): LOADED_LATER for where, _ in step.loads or ()}
    if not later:
        return schema
    required = [name for name in schema.get("required", ()) if name not in later]
    return {**schema, "properties": {**schema.get("properties", {}), **later}, "required": required}


def returned(agent: str, action: str, *, computed: Computed | None = None) -> dict[str, Any]:
    """Return the result schema of an action; without one, the schema of any object.

    A step without an agent has that of its declaration: `computed` are its workflow and its name.
    """
    if agent == LOCAL and computed and not action:  # the undo of children has one
        declared = registry.step(*computed)
        return dict(declared.gives) if declared and declared.gives else {"type": "object"}
    return _declared(agent, action, "returns") or {"type": "object"}


def guarded(step: RequestedStep) -> Sequence[str]:
    """Return the fields of a step's request that one person must not change alone."""
    return _declared(step.agent, step.action, "guarded") or ()


def changed_guarded(step: RequestedStep, request: Mapping[str, Any]) -> list[str]:
    """Return the guarded fields that `request` changes."""
    return [name for name in guarded(step) if request.get(name) != step.request.get(name)]


def guards(steps: Iterable[Any], data: Iterable[str]) -> list[str]:
    """Return those of the names in `data` from which steps take guarded fields, or what they charge."""
    templates: list[Any] = []
    for step in steps:
        for action, request in ((step.action, step.request), (step.undo, step.undo_request)):
            names = _declared(step.agent, action or "", "guarded") or ()
            templates += [request.get(name) for name in names]
        templates.append(step.charges)
    paths = (path for template in templates for path in placeholders(template))
    taken = {names[0] for origin, *names in paths if not origin and names}
    return [name for name in data if name in taken]


def problems(schema: Mapping[str, Any], value: Any) -> list[tuple[tuple[str, ...], str]]:
    """Return at most five problems of a value, as (path, message); empty if it is valid."""
    errors = sorted(Draft202012Validator(schema).iter_errors(value), key=str)
    return [(tuple(map(str, error.absolute_path)), _message(error)) for error in errors[:5]]


def _message(problem: ValidationError) -> str:
    """Return what is wrong, in the words of people rather than those of JSON Schema."""
    value = cast("Any", problem.instance)
    expected = cast("Any", problem.validator_value)
    match problem.validator:
        case "type":
            kind = KINDS.get(str(expected), f"of type {expected}")
            return MISSING if value is None else f"must be {kind}, not {json.dumps(value)}"
        case "required":
            return problem.message.replace("is a required property", "is missing")
        case "minLength" if not value:
            return MISSING
    return problem.message


def shape(value: Any) -> dict[str, Any]:  # noqa: PLR0911 - one for each JSON type
    """Return a schema of values with the same fields and types as `value`."""
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


def _declared(agent: str, action: str, name: str) -> Any:
    known = registry.agents.get(agent)
    return getattr(known.actions().get(action) if known else None, name, None)


def _validate(schema: Mapping[str, Any], value: Any, what: str) -> None:
    if faults := problems(schema, value):
        raise Invalid("; ".join(f"{'.'.join(where) or what}: {wrong}" for where, wrong in faults))
