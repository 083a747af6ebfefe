"""Workflows as data: which steps, by which agents, in which order, with which requests.

A request is a template: plain JSON with `field("…")` where a value of the task's input belongs and
`result("step", "…")` where one of an earlier step's result does. Templates are stored with each
task, so a deploy never changes an order in flight, and they are checked when the server starts:
an unknown step, a cycle or a result of a step that need not be done yet is found before it runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from graphlib import CycleError, TopologicalSorter
from typing import Any

MARK = "$from"  # the one key of a stored placeholder: {"$from": ["step or empty", "name", …]}


class Unresolved(LookupError):
    """A template names a value that is not there; its text says which."""


def field(*path: str) -> dict[str, Any]:
    """Stand for the value at `path` of the task's input."""
    return {MARK: ["", *path]}


def result(step: str, *path: str) -> dict[str, Any]:
    """Stand for the value at `path` of the result of `step`; without a path, the whole result."""
    return {MARK: [step, *path]}


def resolve(template: Any, data: Mapping[str, Any], results: Mapping[str, Any]) -> Any:
    """Return `template` with each placeholder replaced; raise `Unresolved` for one that has no value."""
    if isinstance(template, Mapping):
        if template.keys() == {MARK}:
            return _look_up(template[MARK], data, results)
        return {name: resolve(value, data, results) for name, value in template.items()}
    if isinstance(template, list):
        return [resolve(value, data, results) for value in template]
    return template


def placeholders(template: Any) -> Iterable[Sequence[str]]:
    """Yield the path of each placeholder in `template`: the step's name (or ""), then names."""
    if isinstance(template, Mapping):
        if template.keys() == {MARK}:
            yield template[MARK]
            return
        template = list(template.values())
    if isinstance(template, list):
        for value in template:
            yield from placeholders(value)


def require_fields(template: Any, data: Mapping[str, Any]) -> None:
    """Raise `Unresolved` if `template` takes a field that `data` does not have."""
    for path in placeholders(template):
        if not path[0]:
            _look_up(path, data, {})


def _look_up(path: Sequence[str], data: Mapping[str, Any], results: Mapping[str, Any]) -> Any:
    step, *names = path
    value: Any = results.get(step) if step else data
    for name in names:
        try:
            value = value[name]
        except (LookupError, TypeError):
            origin = f"the result of {step}" if step else "the input"
            raise Unresolved(f"{origin} has no {'.'.join(names)}") from None
    return value


@dataclass(frozen=True, kw_only=True)
class Step:
    """One call to one agent: `agent.action(request)`, once every step in `after` is done.

    `request` is a template (see the module). `after` names earlier steps of the same workflow.
    """

    name: str
    agent: str
    action: str
    request: Mapping[str, Any] = dataclass_field(default_factory=dict)
    after: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """One submission as the application's `record` hook sees it."""

    reference: str
    data: dict[str, Any]


class Refused(ValueError):
    """Raised by a `record` hook: this submission can never be taken, and why."""


def _record_nothing(_submitted: Sequence[Submitted]) -> None:
    """Serve a workflow whose application keeps no rows of its own."""


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """The steps of one kind of task.

    `record` is called with a batch of submissions inside the transaction that makes their tasks:
    what it writes is committed with them or not at all (P19). It raises `Refused` for one that
    can never be taken. `time_allowed` is the seconds until a task counts as overdue.
    """

    name: str
    steps: Sequence[Step]
    record: Callable[[Sequence[Submitted]], None] = _record_nothing
    time_allowed: float = 3600.0

    def problems(self) -> list[str]:
        """Return what is wrong with the declaration, a sentence each; empty when it is sound."""
        names = [step.name for step in self.steps]
        found = [f"step {name!r} is declared twice" for name in _repeated(names)]
        if not names:
            found.append("it has no steps")
        for step in self.steps:
            found += [
                f"step {step.name!r} comes after {other!r}, which is no step of it"
                for other in step.after
                if other not in names
            ]
        if found:
            return found
        order = {step.name: set(step.after) for step in self.steps}
        try:
            sequence = list(TopologicalSorter(order).static_order())
        except CycleError as error:
            return [f"its steps wait for each other in a circle: {' → '.join(error.args[1])}"]
        before: dict[str, set[str]] = {}
        for name in sequence:
            before[name] = order[name].union(*(before[other] for other in order[name]))
        return [
            f"step {step.name!r} takes the result of {other!r}, which need not be done before it"
            for step in self.steps
            for other, *_ in placeholders(step.request)
            if other and other not in before[step.name]
        ]


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})
