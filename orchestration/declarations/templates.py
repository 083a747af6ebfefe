"""Problems of the templates of requests."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..payloads.placeholders import FIRST, ITEM, KEYS, LOADED, MARK, loads_of, placeholders
from ..registry import suggest
from ..workflows.step import Step
from ..workflows.workflow import Workflow
from .problem import Problem, shown

A_TEMPLATE = (
    "A template is data, a dict of JSON, that is stored with each task: field(…) stands for a value of the "
    "input, result(…) for one of an earlier step. Anything else belongs in the agent, or in a step with "
    "compute=."
)


def not_data(template: Any) -> Iterable[Problem]:
    """Yield why a template is not a dict of JSON with placeholders."""
    if not isinstance(template, Mapping):
        yield Problem("E001", f"is {shown(template)}, not a dict", A_TEMPLATE)
        return
    yield from not_json(template)


def not_json(template: Any) -> Iterable[Problem]:
    """Yield what of a template is not JSON."""
    for where, value in _strange(template, ()):
        at = f" at {'.'.join(where)!r}" if where else ""
        yield Problem("E001", f"has{at} {shown(value)}, which is not JSON", A_TEMPLATE)


def _strange(value: Any, where: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], Any]]:
    """Yield each place of a value that JSON does not have, and what is there."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if isinstance(name, str):
                yield from _strange(inner, (*where, name))
            else:
                yield where, name
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _strange(inner, (*where, str(number)))
    elif not isinstance(value, str | int | float | None):
        yield where, value


def unlike(template: Mapping[str, Any], schema: Mapping[str, Any] | None) -> Iterable[Problem]:
    """Yield the fields of a request that its action does not take, or lacks."""
    if schema is None or template.keys() == {MARK}:
        return
    known = schema.get("properties", {})
    for name in template:
        if name not in known and schema.get("additionalProperties") is False:
            yield Problem("E010", f"{name!r}, which it does not take{suggest(name, known)}")
    for name in schema.get("required", ()):
        if name not in template:
            yield Problem("E010", f"no {name!r}, which it needs")


def of_results(template: Any, schemas: Mapping[str, Mapping[str, Any] | None]) -> Iterable[Problem]:
    """Yield what a template takes of a result that the action of that step does not return."""
    for origin, *path in placeholders(template):
        schema = schemas.get(origin)
        if not schema or not path or schema.get("additionalProperties") is not False:
            continue
        if path[0] not in (known := schema.get("properties", {})):
            near = suggest(path[0], known)
            yield Problem("E010", f"takes {path[0]!r} of the result of {origin!r}{near}")


def of_card(workflow: Workflow) -> Iterable[Problem]:
    """Yield what operators are shown that is not of the input."""
    templates: Mapping[str, Any] = {
        "contact": workflow.contact,
        "value": workflow.value,
        "personal": list(workflow.personal),
        "run_after": workflow.run_after,
    }
    for name, template in templates.items():
        if any(path[0] for path in placeholders(template)):
            yield Problem("E001", f"its {name} takes something else than fields of the input")


def of_input(workflow: Workflow) -> Iterable[Problem]:
    """Yield what its tasks take that they are not given."""
    taken = {
        path[0]
        for template in workflow.templates
        for origin, *path in placeholders(template)
        if not origin and path and path[0] in workflow.private
    }
    for name in sorted(taken):
        yield Problem(
            "E001", f"a template takes {name!r}, which is private: tasks are made without it"
        )
    templates = (
        template for step in workflow.steps for template in (step.request, step.undo_request)
    )
    loads = [load for template in templates for load in loads_of(template)]
    if loads and workflow.load is None:
        yield Problem("E001", "its steps take what is loaded, and it has no `load`")
    if any(FIRST in where for where, _ in loads):
        yield Problem(
            "E001", "first(…) takes what is loaded, which is known only as a request is sent"
        )
    if any(not where for where, _ in loads):
        yield Problem("E001", "a request is loaded as a whole: name its fields")


def of_step(step: Step, before: set[str]) -> Iterable[Problem]:
    """Yield what the step's templates take that need not be there."""
    known = {
        "request": before, "undo_request": before | {step.name}, "charges": set[str](), "when": before,
        "ends_within": before, "each": before, "not_before": before,
    }  # fmt: skip
    for name, there in known.items():
        for origin, *path in placeholders(getattr(step, name)):
            other = path[0] if origin == KEYS else origin
            if origin == LOADED:
                if name not in {"request", "undo_request"} or step.compute or step.workflow:
                    yield Problem("E001", f"its {name} takes what is loaded, and is never sent")
            elif other == ITEM:
                if name != "request" or step.each is None:
                    yield Problem(
                        "E019", f"its {name} takes an item, and it is made for none: each="
                    )
            elif other and other not in there:
                what = "key" if origin == KEYS else "result"
                yield Problem(
                    "E001",
                    f"its {name} takes the {what} of {other!r}, which need not be done before it",
                )
