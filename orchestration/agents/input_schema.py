"""The JSON Schema of a workflow's input, as far as its templates and its agents' actions tell it."""

from collections.abc import Iterator, Mapping
from typing import Any

from .. import registry
from ..payloads.placeholders import FIRST, MARK
from ..workflows.workflow import Workflow

MONEY: Mapping[str, Any] = {
    "properties": {"amount": {"type": "integer"}, "currency": {"type": "string"}}
}
TEXT: Mapping[str, Any] = {"type": "string"}
Field = tuple[tuple[str, ...], Mapping[str, Any], bool]


def input_schema(workflow: Workflow) -> dict[str, Any]:
    """Return a schema of what the workflow's tasks take: other fields may be there as well."""
    root: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    for path, schema, required in _fields(workflow):
        holder = root
        for name in path[:-1]:
            holder = _member(holder, name, required=required)
            holder.setdefault("type", "object")
        _member(holder, path[-1], required=required).update(schema)
    return root


def _member(holder: dict[str, Any], name: str, *, required: bool) -> dict[str, Any]:
    """Return the schema of a field of an object, which has to have it if `required`."""
    if required and name not in (names := holder.setdefault("required", [])):
        names.append(name)
    member: dict[str, Any] = holder.setdefault("properties", {}).setdefault(name, {})
    return member


def _fields(workflow: Workflow) -> Iterator[Field]:
    """Yield each field that a template takes, what the taker says of it, and whether it must be there."""
    yield from _taken(workflow.contact, TEXT)
    yield from _taken(workflow.value, MONEY)
    for step in workflow.steps:
        agent = registry.agents.get(step.agent)
        actions = agent.actions() if agent else {}
        for name, request in ((step.action, step.request), (step.undo, step.undo_request)):
            accepts = actions[name].accepts if name in actions else None
            yield from _taken(request, accepts or {})
        yield from _taken(step.charges, MONEY)
        yield from _taken(step.when, {})


def _taken(template: Any, schema: Mapping[str, Any]) -> Iterator[Field]:
    if not isinstance(template, Mapping):
        parts = template if isinstance(template, list) else ()
        items = schema.get("items")
        for part in parts:
            yield from _taken(part, items if isinstance(items, Mapping) else {})
    elif template.keys() == {FIRST}:
        for path, of_field, _ in _taken(template[FIRST], {"items": schema}):
            yield path, of_field, False  # it has another value where the input has none
    elif template.keys() == {MARK}:
        origin, *path = template[MARK]
        if not origin and path:
            yield tuple(path), schema, True
    else:
        properties = schema.get("properties", {})
        for name, part in template.items():
            yield from _taken(part, properties.get(name, {}))
