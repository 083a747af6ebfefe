"""Problems of steps with child tasks: what makes them, and the workflow of these."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ..decisions.flow import CHILD_UNDONE, PASS
from ..payloads.placeholders import EACH, FIRST, KEYS, LOADED, MARK, placeholders, required
from ..registry import suggest
from ..workflows.step import Step
from ..workflows.workflow import Workflow
from . import templates
from .problem import LONGEST_NAME, Problem, shown

ALONE = "A step has child tasks, or an agent, a function, a person or a signal: make it two steps."
ENDLESS = "Give one of these steps each=, a list that gets shorter, or when=."


def malformed(step: Any) -> Iterable[Problem]:
    """Yield the fields of a step with children that are of another type than they have to be."""
    if not isinstance(step.workflow, str) or len(step.workflow) > LONGEST_NAME:
        yield Problem("E019", f"its workflow is {shown(step.workflow)}, not the name of one")
    if not (step.each is None or isinstance(step.each, list | Mapping)):
        yield Problem("E019", f"its each is {shown(step.each)}, not a list, or a template of one")
    for problem in templates.not_json(step.each):
        yield problem._replace(text=f"its each {problem.text}")
    enough = step.enough
    if not (enough is None or (type(enough) is int and enough > 0)):
        yield Problem("E019", f"its enough is {shown(enough)}, not a number of children")
    if step.workflow == "" and not (step.each is None and enough is None):
        yield Problem("E019", "has each or enough, and no workflow of its children")


def kind(step: Step) -> Iterable[Problem]:
    """Yield what a step with children must not declare."""
    if step.agent or step.action or step.compute is not None or step.is_awaited:
        text = "has child tasks, and an agent, a function, a person or a signal as well"
        yield Problem("E019", text, ALONE)
    if step.undo or step.undo_request or step.irreversible or step.charges:
        text = (
            "has child tasks, whose own undo it is: it takes no undo, undo_request, irreversible or "
            "charges"
        )
        yield Problem("E019", text)
    if step.policy or step.returns is not None:
        yield Problem("E019", "has child tasks: it takes no policy and no returns")
    if step.late == PASS:
        text = "has child tasks, which go on when it is late: it is not passed over"
        yield Problem("E019", text, "Say late='error' or late='undo'.")
    for code in step.refused:
        if code != CHILD_UNDONE:
            text = f"has child tasks, so the one code that is decided about is {CHILD_UNDONE!r}, not {code!r}"
            yield Problem("E019", text)


def own_result(workflow: Workflow) -> Iterable[Problem]:
    """Yield what the result of a workflow takes that its tasks need not have."""
    steps = {step.name: step for step in workflow.steps}
    for origin, *_ in placeholders(workflow.result):
        if origin in {KEYS, LOADED} or (origin and origin not in steps):
            yield Problem(
                "E019", f"its result takes something of {origin!r}, which is none of its steps"
            )
    for origin, *_ in required(workflow.result):
        if origin in steps and steps[origin].may_be_skipped:
            text = f"its result takes that of {origin!r}, which may be skipped"
            yield Problem("E015", text, "Give it a default.")


def problems(workflow: Workflow, known: Mapping[str, Workflow]) -> Iterable[Problem]:
    """Yield what is wrong between a workflow and those of its children; `known` are all workflows."""
    for step in workflow.steps:
        if not step.workflow:
            continue
        child = known.get(step.workflow)
        if child is None:
            text = f"names the workflow {step.workflow!r}{suggest(step.workflow, known)}"
            yield Problem("E019", f"step {step.name!r} {text}")
            continue
        for problem in _of_child(step, child):
            yield problem.of(f"step {step.name!r}", " ")
    if circle := _endless(workflow.name, known):
        text = f"its tasks make children without end: {' → '.join(circle)}"
        yield Problem("E019", text, ENDLESS)


def _of_child(step: Step, child: Workflow) -> Iterable[Problem]:
    """Yield why tasks of a workflow cannot be children, and what they are not given."""
    if child.record is not Workflow.record or child.private:
        yield Problem(
            "E019",
            f"makes children of {child.name!r}, which has record or private: these are for submissions",
        )
    for path in child.fields:
        if missing := _missing(step.request, path):
            near = suggest(missing, step.request)
            text = f"gives children of {child.name!r} no {'.'.join(path)!r}, which they take{near}"
            yield Problem("E010", text)


def _missing(template: Any, path: tuple[str, ...]) -> str:
    """Return the name at which a template lacks a value; empty if it has one, or may have one."""
    for name in path:
        if not isinstance(template, Mapping) or template.keys() & {MARK, FIRST, EACH}:
            return ""  # known only as it is filled in
        if name not in template:
            return name
        template = template[name]
    return ""


def _endless(name: str, known: Mapping[str, Workflow]) -> list[str]:
    """Return a circle of workflows through one whose steps always make a child; none if there is none."""
    always = {
        other: {
            step.workflow
            for step in workflow.steps
            if step.workflow and step.each is None and step.when is True
        }
        for other, workflow in known.items()
    }
    try:
        list(TopologicalSorter(always).static_order())
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle if name in circle else []
    return []
