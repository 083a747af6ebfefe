"""Placeholders in templates: what they stand for, and how they are filled in.

A template is plain JSON in which a placeholder stands where a value of the task's input, of an earlier
step's result, or of what the workflow loads belongs. It is stored with its step. A placeholder is an object
with one key: `$from` names a value, the other ones are made of placeholders, or say how a step ended.
"""

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

MARK = "$from"  # {"$from": ["step or empty", "name", …]}
FIRST = "$first"  # {"$first": [template, …]}
NOT = "$not"  # {"$not": template}
PASSED = "$passed"  # {"$passed": ["step", "code", …]}
DONE = "$done"  # {"$done": ["step"]}
EACH = "$each"  # {"$each": [template of a list, template]}
ITEM = "$item"  # stands for a step in a placeholder: the item of the list that a template is filled in for
KEYS = "$key"  # stands for a step in a placeholder: the keys of all steps, by name
LOADED = "$loaded"  # as well: what the workflow loads when the request is sent
CODES = "$codes"  # among the results: of the steps that were passed over, why, by name

# Where in a request a loaded value belongs, and the path of it in what is loaded.
Load = tuple[tuple[str | int, ...], tuple[str, ...]]
Loads = Sequence[Load]


class Unresolved(LookupError):
    """A template names a value that is not there; its text says which."""


REQUIRED: Any = object()


def field(*path: str, default: Any = REQUIRED) -> dict[str, Any]:
    """Stand for the value at `path` of the task's input; without a `default` the input has to have it.

    >>> Step(name="hello", agent="greeter", action="greet", undo=None,
    ...      request={"to": field("guest", "name")}).request
    {'to': {'$from': ['', 'guest', 'name']}}
    """
    return _or({MARK: ["", *path]}, default)


def result(step: str, *path: str, default: Any = REQUIRED) -> dict[str, Any]:
    """Stand for the value at `path` of the result of `step`; without a path, the whole result.

    A step that may be skipped need not have one: then `default` stands there.

    >>> again = {"to": field("name"), "room": result("book", "room", "number")}
    """
    return _or({MARK: [step, *path]}, default)


def first(*templates: Any) -> dict[str, Any]:
    """Stand for the first of `templates` that has a value.

    >>> letter = {"parcel": first(result("ship_a", "tracking"), result("ship_b", "tracking"), "none")}
    """
    return {FIRST: list(templates)}


def not_(template: Any) -> dict[str, Any]:
    """Stand for true where `template` is false, empty, 0 or null, and for false otherwise.

    >>> wrap = Step(name="wrap", agent="greeter", action="greet", undo=None, when=not_(field("digital")))
    """
    return {NOT: template}


def passed(step: str, *codes: str) -> dict[str, Any]:
    """Stand for whether `step` was refused, with one of `codes` if any are named, and passed over.

    >>> other = Step(name="ship_b", agent="hotel", action="book", after=["ship_a"], undo=None,
    ...              when=passed("ship_a", "address_not_served"))
    """
    return {PASSED: [step, *codes]}


def done(step: str) -> dict[str, Any]:
    """Stand for whether `step` is processed by now: not while it runs, and not if it was skipped.

    >>> track = Step(name="track", agent="hotel", action="book", after=["ship_a"], undo=None,
    ...              when=done("ship_a"))
    """
    return {DONE: [step]}


def _or(template: dict[str, Any], default: Any) -> dict[str, Any]:
    return template if default is REQUIRED else first(template, default)


def key(step: str) -> dict[str, Any]:
    """Stand for the idempotency key under which `step` was done: for services that undo by key.

    >>> Step(name="book", agent="hotel", action="book", undo="cancel", undo_request={"key": key("book")}).undo
    'cancel'
    """
    return {MARK: [KEYS, step]}


def loaded(*path: str) -> dict[str, Any]:
    """Stand for the value at `path` of what the workflow loads when the request is sent (`load`).

    >>> def load(references):
    ...     return {reference: {"address": {"city": "Bath"}} for reference in references}
    >>> mail = Step(name="mail", agent="greeter", action="greet", undo=None,
    ...             request={"city": loaded("address", "city")})
    >>> register(Workflow(name="mail", steps=[mail], load=load))
    """
    return {MARK: [LOADED, *path]}


def item(*path: str, default: Any = REQUIRED) -> dict[str, Any]:
    """Stand for the value at `path` of the item for which a child task is made; without a path, the item.

    >>> parcels = Step(name="parcels", workflow="parcel", each=result("sort", "parcels"),
    ...                request={"house": item("house"), "order": field("number")})
    """
    return _or({MARK: [ITEM, *path]}, default)


def each(template: Any, items: Any) -> dict[str, Any]:
    """Stand for a list: `template` filled in for each item of the list for which `items` stands.

    >>> each({"to": item("name")}, field("guests"))
    {'$each': [{'$from': ['', 'guests']}, {'to': {'$from': ['$item', 'name']}}]}
    """
    return {EACH: [items, template]}


def resolve(template: Any, data: Mapping[str, Any], results: Mapping[str, Any]) -> Any:
    """Return `template` with each placeholder replaced; raise `Unresolved` for one that has no value.

    `results` are of the steps that are done; under CODES it may have those that were passed over. What is
    loaded when the request is sent is None until then.
    """
    if isinstance(template, Mapping):
        if len(template) == 1:
            ((name, content),) = template.items()
            if name == MARK:
                return _look_up(content, data, results)
            if name in OPERATIONS:
                return OPERATIONS[name](content, data, results)
        return {name: resolve(value, data, results) for name, value in template.items()}
    if isinstance(template, list):
        return [resolve(value, data, results) for value in template]
    return template


def placeholders(template: Any) -> Iterable[Sequence[str]]:
    """Yield the path of each placeholder in `template`: the step's name (or ""), then names."""
    return (content for name, content in _placed(template) if name == MARK)


def required(template: Any) -> Iterable[Sequence[str]]:
    """Yield the path of each placeholder that has to have a value: not of those in `first`."""
    return (content for name, content in _placed(template, but={FIRST}) if name == MARK)


def ends(template: Any) -> Iterable[Sequence[str]]:
    """Yield the steps whose ends a template asks for: PASSED or DONE, the step's name, then codes."""
    return ((name, *content) for name, content in _placed(template) if name in {PASSED, DONE})


def _placed(template: Any, but: Collection[str] = ()) -> Iterable[tuple[str, Any]]:
    """Yield the placeholders of a template, each as (name, content), without those in the ones of `but`."""
    if isinstance(template, Mapping):
        if len(template) == 1:
            ((name, content),) = template.items()
            if name == MARK or name in OPERATIONS:
                yield name, content
                if name == MARK or name in but:
                    return
        template = list(template.values())
    if isinstance(template, list):
        for value in template:
            yield from _placed(value, but)


def _first(templates: Any, data: Mapping[str, Any], results: Mapping[str, Any]) -> Any:
    missing = ""
    for template in templates:
        try:
            return resolve(template, data, results)
        except Unresolved as error:
            missing = missing or str(error)
    raise Unresolved(missing)


def _passed(content: Any, _data: Mapping[str, Any], results: Mapping[str, Any]) -> bool:
    step, *codes = content
    code = results.get(CODES, {}).get(step)
    return code is not None and (not codes or code in codes)


def _each(content: Any, data: Mapping[str, Any], results: Mapping[str, Any]) -> list[Any]:
    of, template = content
    items = resolve(of, data, results)
    if not isinstance(items, list):
        raise Unresolved(f"each is {items!r:.100}, not a list")
    return [resolve(template, data, {**results, ITEM: value}) for value in items]


OPERATIONS: Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Any]] = {
    FIRST: _first,
    NOT: lambda content, data, results: not resolve(content, data, results),
    PASSED: _passed,
    EACH: _each,
    DONE: lambda content, _data, results: content[0] in results,
}


def _look_up(path: Sequence[str], data: Mapping[str, Any], results: Mapping[str, Any]) -> Any:
    step, *names = path
    if step == LOADED:
        return None
    if step and step not in results:
        raise Unresolved(f"{step} has no result")
    value: Any = results[step] if step else data
    for name in names:
        try:
            value = value[name]
        except (LookupError, TypeError):
            # keys are always there
            origin = {"": "the input", ITEM: "the item"}.get(step, f"the result of {step}")
            raise Unresolved(f"{origin} has no {'.'.join(names)}") from None
    return value


def has(value: Any, path: Sequence[str]) -> bool:
    """Return whether there is a value at `path`."""
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return False
        value = value[name]
    return True


def near(value: Any, path: Sequence[str]) -> str:
    """Return the question whether another name was meant, if one like the missing one is there."""
    for name in path:
        if not isinstance(value, Mapping):
            return ""
        if name not in value:
            near = difflib.get_close_matches(name, [str(known) for known in value], n=1)
            return f" (did you mean {near[0]!r}?)" if near else ""
        value = value[name]
    return ""


def loads_of(template: Any, where: tuple[str | int, ...] = ()) -> list[Load]:
    """Return what a template takes of what is loaded."""
    if isinstance(template, Mapping):
        if template.keys() == {MARK}:
            origin, *path = template[MARK]
            return [(where, tuple(path))] if origin == LOADED else []
        parts = list(template.items())
    else:
        parts = list(enumerate(template)) if isinstance(template, list) else []
    return [load for name, value in parts for load in loads_of(value, (*where, name))]


def pick(loads: Loads, values: Mapping[str, Any]) -> list[Any]:
    """Return the values that `loads` take of what was loaded; raise `Unresolved` if one is not there."""
    if missing := [path for _, path in loads if not has(values, path)]:
        named = (".".join(path) + near(values, path) for path in missing)
        raise Unresolved(f"what was loaded has no {', '.join(named)}")
    return [resolve({MARK: ["", *path]}, values, {}) for _, path in loads]


def filled(request: Any, loads: Loads, values: Sequence[Any]) -> Any:
    """Return a request with the `values` that its `loads` took, each in its place."""
    for (where, _), value in zip(loads, values, strict=True):
        request = _with(request, where, value)
    return request


def at(request: Any, where: Sequence[str | int]) -> Any:
    """Return the value at a place of a request, or None."""
    for name in where:
        try:
            request = request[name]
        except (LookupError, TypeError):
            return None
    return request


def _with(holder: Any, where: Sequence[str | int], value: Any) -> Any:
    if not where:
        return value
    name, *rest = where
    copy = dict(holder) if isinstance(holder, Mapping) else list(holder)
    copy[name] = _with(copy[name], rest, value)  # type: ignore[index]  # as its holder is
    return copy
